# cmake --install: public headers, both libraries, the program, pkg-config files. All paths are relative, so that the tree can be moved.
include(GNUInstallDirs)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ait TYPE INCLUDE FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
install(TARGETS ait ait_rt LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET ait_cli)
  file(RELATIVE_PATH lib_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(ait_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${lib_from_bin}")
  install(TARGETS ait_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

function(ait_pkg_config name text)
  set(AIT_PC_NAME ${name})
  set(AIT_PC_TEXT ${text})
  file(RELATIVE_PATH AIT_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" AIT_PC_PREFIX "${AIT_PC_PREFIX}")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/ait.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
ait_pkg_config(ait "Import, tune and run trained models")
ait_pkg_config(ait-rt "Load and run tuned models")

# Installs into the build folder and compiles programs against what was installed.
if(AIT_TESTS)
  enable_testing()
  find_program(AIT_CXX NAMES c++ g++ clang++)
  add_test(NAME install COMMAND ${PROJECT_SOURCE_DIR}/tests/install/check.sh ${CMAKE_COMMAND} ${CMAKE_BINARY_DIR} ${CMAKE_INSTALL_LIBDIR}
                                ${CMAKE_C_COMPILER} ${AIT_CXX})
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  set_tests_properties(install PROPERTIES TIMEOUT 300 ENVIRONMENT "CFLAGS=${CMAKE_C_FLAGS_${build_type}}") # sanitizers, when there are
endif()
