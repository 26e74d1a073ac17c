# The outside libraries. One module uses each, except zstd, which has a reader and a writer (the test
# layering checks that). OpenBLAS is loaded when it is needed (src/solver): only tests and benchmarks are
# linked with it, and with LAPACKE.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(MPFR REQUIRED IMPORTED_TARGET mpfr)
pkg_check_modules(CAIRO REQUIRED IMPORTED_TARGET cairo)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(OPENBLAS IMPORTED_TARGET openblas)
pkg_check_modules(LAPACKE IMPORTED_TARGET lapacke)
