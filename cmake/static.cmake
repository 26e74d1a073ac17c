# PHEMA_STATIC: a program for clusters that needs only libc of the machine it runs on, with libm,
# libpthread and the loader, which belong to it. Every other library is linked from its archive. libc
# stays shared, since its names, locales and threads should be the machine's own.
set(PHEMA_LIBC_PARTS m pthread dl rt c)

function(phema_archive_of out name)
    find_library(PHEMA_ARCHIVE_${name} NAMES lib${name}.a)
    if(NOT PHEMA_ARCHIVE_${name})
        message(FATAL_ERROR "PHEMA_STATIC: lib${name}.a is not there; which package has it says "
            "apt-file, or build without -DPHEMA_STATIC=ON")
    endif()
    mark_as_advanced(PHEMA_ARCHIVE_${name})
    set_property(GLOBAL APPEND PROPERTY PHEMA_ARCHIVES ${PHEMA_ARCHIVE_${name}})
    set(${out} ${PHEMA_ARCHIVE_${name}} PARENT_SCOPE)
endfunction()

# The libraries that pkg-config names for static linking, as archives; more: those it does not name.
function(phema_link_archives target prefix)
    set(archives "")
    foreach(name ${${prefix}_STATIC_LIBRARIES} ${ARGN})
        if(name IN_LIST PHEMA_LIBC_PARTS)
            continue()
        endif()
        phema_archive_of(archive ${name})
        list(APPEND archives ${archive})
    endforeach()
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${archives}")
endfunction()

foreach(prefix ZLIB JANSSON PCRE2 ZSTD XXHASH)
    phema_link_archives(PkgConfig::${prefix} ${prefix})
endforeach()
phema_link_archives(PkgConfig::MPFR MPFR gmp)
if(PHEMA_URING_LIBRARY)
    phema_link_archives(PkgConfig::URING URING)
endif()
if(PHEMA_QUADMATH)
    phema_archive_of(PHEMA_QUADMATH quadmath)
endif()
add_link_options(-static-libgcc)

# cairo: from its archive where there is one, which Debian 13 and later lack. Otherwise the program loads
# the machine's cairo for the first picture, as it does where it is not static.
find_library(PHEMA_CAIRO_ARCHIVE NAMES libcairo.a)
mark_as_advanced(PHEMA_CAIRO_ARCHIVE)
if(PHEMA_CAIRO_ARCHIVE)
    phema_link_archives(PkgConfig::CAIRO CAIRO)
    message(STATUS "cairo: ${PHEMA_CAIRO_ARCHIVE}")
else()
    message(STATUS "cairo: the library of the machine that the program runs on, for PNG and PDF")
endif()

# OpenBLAS: only the serial archive. The usual one starts a thread for every processor when the program
# starts. Without the archive the program loads the machine's OpenBLAS, like the shared program.
find_library(PHEMA_OPENBLAS_SERIAL NAMES libopenblas.a NO_DEFAULT_PATH
    PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial)
mark_as_advanced(PHEMA_OPENBLAS_SERIAL)
if(PHEMA_OPENBLAS_SERIAL)
    message(STATUS "OpenBLAS: ${PHEMA_OPENBLAS_SERIAL}")
else()
    message(STATUS "OpenBLAS: that of the machine that the program runs on; libopenblas-serial-dev "
        "has an archive that makes it part of the program")
endif()
