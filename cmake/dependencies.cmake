# Every library outside the project, once; why each is there: docs/dependencies.md.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(SQLite3 REQUIRED)
pkg_check_modules(JSONC REQUIRED IMPORTED_TARGET GLOBAL json-c)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET GLOBAL libzip)
add_library(json-c ALIAS PkgConfig::JSONC)
add_library(zip ALIAS PkgConfig::LIBZIP)
