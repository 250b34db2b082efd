# The written pages say what the program does: generated pages are up to date, README's commands and example run, and so do the examples that
# CONTRIBUTING.md quotes.
if(TARGET ait_cli)
  add_test(NAME docs COMMAND ${PROJECT_SOURCE_DIR}/tools/gen_docs $<TARGET_FILE:ait_cli> --check)
  add_test(NAME json_page COMMAND ${PROJECT_SOURCE_DIR}/tools/check_json_page ${CMAKE_BINARY_DIR})
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  add_test(NAME readme COMMAND ${PROJECT_SOURCE_DIR}/tools/check_readme ${CMAKE_BINARY_DIR} ${CMAKE_C_COMPILER})
  set_tests_properties(json_page PROPERTIES TIMEOUT 300)
  set_tests_properties(readme PROPERTIES TIMEOUT 300 ENVIRONMENT "CFLAGS=${CMAKE_C_FLAGS_${build_type}}") # sanitizers, when there are
endif()

# examples/contributing: one program each, with its own check.
set(contributing ${PROJECT_SOURCE_DIR}/examples/contributing)
set(kernel_sources ${contributing}/axpb_generic.c)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND kernel_sources ${contributing}/axpb_avx2.c ${contributing}/axpb_avx512.c)
endif()
set_property(SOURCE ${contributing}/axpb_avx2.c PROPERTY COMPILE_OPTIONS -mavx2 -mfma -mf16c)
set_property(SOURCE ${contributing}/axpb_avx512.c PROPERTY COMPILE_OPTIONS -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c)
foreach(example op kernel pass backend)
  set(target contributing_${example})
  add_executable(${target} EXCLUDE_FROM_ALL ${contributing}/${example}.c)
  target_link_libraries(${target} PRIVATE ait_static PkgConfig::CMOCKA)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME contributing/${example} COMMAND ${target})
  set_tests_properties(contributing/${example} PROPERTIES TIMEOUT 60)
  add_dependencies(ait_tests ${target})
endforeach()
target_sources(contributing_kernel PRIVATE ${kernel_sources})
