# The written pages say what the program does: generated pages are up to date.
if(TARGET ait_cli)
  add_test(NAME docs COMMAND ${PROJECT_SOURCE_DIR}/tools/gen_docs $<TARGET_FILE:ait_cli> --check)
endif()
