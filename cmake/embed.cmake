# A file as a C string: cmake -D in=FILE -D out=FILE.c -D name=SYMBOL -P embed.cmake
file(READ ${in} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
get_filename_component(from ${in} NAME)
file(WRITE ${out} "/* Made by cmake/embed.cmake from ${from}. */\nextern const char ${name}[];\nconst char ${name}[] = {${bytes}0};\n")
