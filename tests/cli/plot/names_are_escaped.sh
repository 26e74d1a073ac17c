# The picture is well-formed and shows the name of the directory, for any name.
name=$'<b>&"\e[31m\xff'
"$phema" gen --quiet --count 2 "./$name" >/dev/null
"$phema" plot --quiet weights --sigma-rel 0.1 "./$name" -o weights.svg
python3 -c "import xml.dom.minidom as m
print(m.parse('weights.svg').getElementsByTagName('title')[0].firstChild.data)"
"$phema" plot --quiet weights --sigma-rel 0.1 "./$name" -o weights.pdf
"$phema" plot --quiet weights --sigma-rel 0.1 "./$name" -o weights.png
