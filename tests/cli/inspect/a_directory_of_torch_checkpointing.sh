# a series by the names of its directories, and one of them; a file of one process is a part
cp -r "$fixtures/torch_checkpointing_first_only" run
"$phema" inspect run
"$phema" inspect -v run/step_40
"$phema" inspect run/step_40/model_1.pt
"$phema" weights --sigma-rel 0.1 run
"$phema" weights --sigma-rel 0.1 --input-profile raw run
cp -r run/step_20 run/tmp_step_60 # not finished: no snapshot
"$phema" inspect run/tmp_step_60
"$phema" inspect --json run | grep '"n_snapshots"\|"time"'
cp run/step_20/step_0.pt run/step_20/step_1.pt run/step_40 # a counter that disagrees
"$phema" inspect run
