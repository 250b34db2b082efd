# src/<room>/foo_test.c and tests/c/foo_test.c: one program and one ctest each.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET GLOBAL cmocka)
file(GLOB_RECURSE test_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_test.c ${PROJECT_SOURCE_DIR}/tests/c/*_test.c)
foreach(file IN LISTS test_files)
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${file})
  string(REGEX REPLACE "\\.c$" "" name ${name})
  string(REGEX REPLACE "^(src|tests/c)/" "" name ${name})
  string(REPLACE "/" "_" target ${name})
  add_executable(${target} EXCLUDE_FROM_ALL ${file})
  target_link_libraries(${target} PRIVATE ait_static PkgConfig::CMOCKA)
  target_compile_definitions(${target} PRIVATE AIT_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" AIT_BINARY_DIR="${CMAKE_BINARY_DIR}")
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${target})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  list(APPEND test_targets ${target})
endforeach()
# A backend against itself, here and now (make trust: 100 times).
add_test(NAME tune/aa_real COMMAND tune_aa_test --real 40)
set_tests_properties(tune/aa_real PROPERTIES TIMEOUT 600 LABELS slow)
# What the libraries hold and export.
add_test(NAME symbols COMMAND ${PROJECT_SOURCE_DIR}/tools/check_symbols.sh $<TARGET_FILE:ait_rt> $<TARGET_FILE:ait>
                              ${CMAKE_BINARY_DIR}/CMakeFiles/ait_full_objects.dir ${PROJECT_SOURCE_DIR}/include)

# Golden tests of the command line: a shell script, in parts.
if(TARGET ait_cli)
  foreach(part usage models debug tune strategies faults keys ship)
    add_test(NAME cli/${part} COMMAND ${PROJECT_SOURCE_DIR}/tests/cli/cli_test.sh $<TARGET_FILE:ait_cli> ${PROJECT_SOURCE_DIR}/tests/data ${part})
    set_tests_properties(cli/${part} PROPERTIES TIMEOUT 300)
  endforeach()
  # The report's page in a browser, where there is one.
  add_test(NAME cli/report_page COMMAND ${PROJECT_SOURCE_DIR}/tests/cli/report_page_test.sh $<TARGET_FILE:ait_cli> ${PROJECT_SOURCE_DIR}/tests/data)
  set_tests_properties(cli/report_page PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
  # Programs that hold one kind of meaning each, with PyTorch's answers (tests/data/kinds).
  foreach(options "reference" "reference --passes=core" "native" "eager")
    string(REPLACE " " ";" words ${options})
    string(REGEX REPLACE "[^a-z]+" "_" part ${options})
    add_test(NAME kinds/${part} COMMAND $<TARGET_FILE:ait_cli> verify --cases ${PROJECT_SOURCE_DIR}/tests/data/kinds --backend ${words})
    set_tests_properties(kinds/${part} PROPERTIES TIMEOUT 300)
  endforeach()
endif()
# ONNX's node tests: a sample; all of them: tests/cli/onnx_cases_test.sh AIT tests/data FOLDER.
if(TARGET ait_cli)
  add_test(NAME cli/onnx_cases COMMAND ${PROJECT_SOURCE_DIR}/tests/cli/onnx_cases_test.sh $<TARGET_FILE:ait_cli> ${PROJECT_SOURCE_DIR}/tests/data)
  set_tests_properties(cli/onnx_cases PROPERTIES TIMEOUT 300)
endif()
# The installation test takes what there is to install.
add_custom_target(ait_tests DEPENDS ${test_targets} ait ait_rt $<TARGET_NAME_IF_EXISTS:ait_cli>)
file(GLOB_RECURSE bench_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_bench.c ${PROJECT_SOURCE_DIR}/bench/*_bench.c)
foreach(file IN LISTS bench_files)
  get_filename_component(name ${file} NAME_WE)
  add_executable(${name} EXCLUDE_FROM_ALL ${file})
  target_link_libraries(${name} PRIVATE ait_static)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  list(APPEND bench_targets ${name})
endforeach()
add_custom_target(ait_benches DEPENDS ${bench_targets})

# Faults that users of other tools met, and the operator conformance sample: folders of cases.
if(TARGET ait_cli)
  add_test(NAME known_faults COMMAND ${PROJECT_SOURCE_DIR}/tests/known_faults/test.sh $<TARGET_FILE:ait_cli> ${PROJECT_SOURCE_DIR}/tests/known_faults
                                     ${PROJECT_SOURCE_DIR}/tests/data)
  add_test(NAME conformance_sample COMMAND ${PROJECT_SOURCE_DIR}/tests/conformance/sample.sh $<TARGET_FILE:ait_cli> ${PROJECT_SOURCE_DIR}/tests/conformance)
  set_tests_properties(known_faults conformance_sample PROPERTIES TIMEOUT 900) # many processes, and sanitizers slow each
endif()

# examples/custom_op: an application and a plugin with the same operator.
if(TARGET ait_cli)
  set(custom_op ${PROJECT_SOURCE_DIR}/examples/custom_op)
  add_library(example_custom_op_plugin MODULE EXCLUDE_FROM_ALL ${custom_op}/foo.c)
  target_link_libraries(example_custom_op_plugin PRIVATE ait_flags)
  set_target_properties(example_custom_op_plugin PROPERTIES OUTPUT_NAME foo PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_executable(example_custom_op EXCLUDE_FROM_ALL ${custom_op}/app.c ${custom_op}/foo.c)
  target_link_libraries(example_custom_op PRIVATE ait_flags ait)
  set_target_properties(example_custom_op PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_library(test_plugin_backend MODULE EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/cli/plugin_backend.c)
  target_link_libraries(test_plugin_backend PRIVATE ait_flags)
  set_target_properties(test_plugin_backend PROPERTIES OUTPUT_NAME plugin_backend PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_library(test_plugin_scale MODULE EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/cli/plugin_scale.c)
  target_link_libraries(test_plugin_scale PRIVATE ait_flags)
  set_target_properties(test_plugin_scale PROPERTIES OUTPUT_NAME plugin_scale PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_dependencies(ait_tests example_custom_op example_custom_op_plugin test_plugin_backend test_plugin_scale)
  add_test(NAME custom_op COMMAND ${PROJECT_SOURCE_DIR}/tests/cli/custom_op_test.sh $<TARGET_FILE:ait_cli> $<TARGET_FILE:example_custom_op>
                                  $<TARGET_FILE:example_custom_op_plugin> ${PROJECT_SOURCE_DIR}/tests/data $<TARGET_FILE:test_plugin_backend>
                                  $<TARGET_FILE:test_plugin_scale>)
  set_tests_properties(custom_op PROPERTIES TIMEOUT 300)
  # Kills at random times (KILLS=100 for more), tuners at once, deciding from a record.
  add_test(NAME cli/trust COMMAND ${PROJECT_SOURCE_DIR}/tests/cli/trust_test.sh $<TARGET_FILE:ait_cli> ${PROJECT_SOURCE_DIR}/tests/data $<TARGET_FILE:test_plugin_backend>)
  set_tests_properties(cli/trust PROPERTIES TIMEOUT 300)
endif()
include(cmake/graph_fuzz.cmake)
