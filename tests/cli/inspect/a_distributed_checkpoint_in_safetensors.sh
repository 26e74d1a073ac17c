# one checkpoint, with a warning; a shard alone is none, and neither is a directory that lost one
cp -r "$fixtures/dcp_safetensors/step-90" run
"$phema" inspect -v run
"$phema" inspect --json run | grep '"format"'
"$phema" inspect run/shard-00001-model-00001-of-00001.safetensors
mv run/shard-00001-model-00001-of-00001.safetensors run/shard-00003-model-00001-of-00001.safetensors
"$phema" inspect run
"$phema" inspect "$fixtures/dcp_safetensors"
