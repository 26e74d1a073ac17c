# One line names all that is missing, and the packages that have it: pip and cmake show it alone.
set(PHEMA_PACKAGES gcc libc6-dev pkg-config libjansson-dev libpcre2-dev libmpfr-dev zlib1g-dev libzstd-dev
    libxxhash-dev libcairo2-dev liburing-dev)

function(phema_require missing)
    if(missing)
        list(JOIN missing ", " missing)
        list(JOIN PHEMA_PACKAGES " " packages)
        # CMake breaks lines that do not begin with a space
        message(FATAL_ERROR " missing: ${missing}; Debian and Ubuntu have all that is needed: apt-get install ${packages}")
    endif()
endfunction()

if(NOT CMAKE_C_COMPILER AND NOT DEFINED ENV{CC})
    find_program(PHEMA_C_COMPILER NAMES cc gcc clang)
    mark_as_advanced(PHEMA_C_COMPILER)
    if(NOT PHEMA_C_COMPILER)
        phema_require("a C compiler")
    endif()
endif()
