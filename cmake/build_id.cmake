# What the speed of a candidate depends on besides the machine: the sources, the compiler and its options. Recorded trials of another build are
# not reused (src/tune/tune.c). Two clones of the same sources have the same id.
if(CMAKE_SCRIPT_MODE_FILE) # cmake -D root=.. -D out=.. -D compiler=.. -P build_id.cmake
  file(GLOB_RECURSE files RELATIVE ${root} ${root}/src/*.[ch] ${root}/src/*.inc ${root}/include/*)
  list(FILTER files EXCLUDE REGEX "_(test|fuzz|bench)\\.c$")
  list(SORT files)
  set(all "${compiler}")
  foreach(file IN LISTS files)
    file(SHA256 ${root}/${file} sum)
    string(APPEND all "${file} ${sum}\n")
  endforeach()
  string(SHA256 id "${all}")
  string(SUBSTRING ${id} 0 16 id)
  file(WRITE ${out} "/* Made by cmake/build_id.cmake. */\n#include \"tune/tune.h\"\n\nconst char *ait_build_id(void) { return \"${id}\"; }\n")
  return()
endif()

file(GLOB_RECURSE BUILD_ID_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.[ch] ${PROJECT_SOURCE_DIR}/src/*.inc ${PROJECT_SOURCE_DIR}/include/*)
list(FILTER BUILD_ID_FILES EXCLUDE REGEX "_(test|fuzz|bench)\\.c$")
set(BUILD_ID_SOURCE ${CMAKE_BINARY_DIR}/generated/build_id.c)
add_custom_command(OUTPUT ${BUILD_ID_SOURCE} DEPENDS ${BUILD_ID_FILES} ${PROJECT_SOURCE_DIR}/cmake/build_id.cmake
  COMMAND ${CMAKE_COMMAND} -D root=${PROJECT_SOURCE_DIR} -D out=${BUILD_ID_SOURCE}
          -D "compiler=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${CMAKE_C_FLAGS}" -P ${PROJECT_SOURCE_DIR}/cmake/build_id.cmake
  VERBATIM COMMENT "build id")
