# PHEMA_STATIC: a program that needs nothing of the machine it runs on but libc (with libm, libpthread
# and the loader, which come with it), for clusters. Every other library is linked from its archive;
# the C library stays as it is, since names, locales and threads of it are best the machine's own.
set(PHEMA_LIBC_PARTS m pthread dl rt c)

function(phema_archive_of out name)
    find_library(PHEMA_ARCHIVE_${name} NAMES lib${name}.a)
    if(NOT PHEMA_ARCHIVE_${name}) # the compiler's own: libgfortran, libquadmath
        execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=lib${name}.a
            OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE)
        if(NOT IS_ABSOLUTE "${file}")
            message(FATAL_ERROR "PHEMA_STATIC: lib${name}.a is not there; which package has it says "
                "apt-file, or build without -DPHEMA_STATIC=ON")
        endif()
        set(PHEMA_ARCHIVE_${name} ${file} CACHE FILEPATH "static library" FORCE)
    endif()
    mark_as_advanced(PHEMA_ARCHIVE_${name})
    set(${out} ${PHEMA_ARCHIVE_${name}} PARENT_SCOPE)
endfunction()

# What pkg-config says of static linking, as archives; more: what it does not say.
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

foreach(prefix ZLIB JANSSON PCRE2 ZSTD XXHASH CAIRO)
    phema_link_archives(PkgConfig::${prefix} ${prefix})
endforeach()
phema_link_archives(PkgConfig::MPFR MPFR gmp)
phema_link_archives(PkgConfig::OPENBLAS OPENBLAS gfortran quadmath)
phema_link_archives(PkgConfig::LAPACKE LAPACKE openblas gfortran quadmath)
add_link_options(-static-libgcc)
