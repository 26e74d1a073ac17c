# libposthoc-ema: the modules behind include/posthoc-ema.h as one shared and one static library. Both hide
# all symbols except those of that header.
set(library_modules api search ops design synth output plan series gpu solver schedule writer accumulate profile formats base)
set(library_objects "")
foreach(module ${library_modules})
    list(APPEND library_objects $<TARGET_OBJECTS:phema_${module}>)
endforeach()

# While the major version is 0, a minor version may change the interface.
set(PHEMA_SOVERSION ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(PHEMA_SOVERSION 0.${PROJECT_VERSION_MINOR})
endif()

add_library(libposthoc-ema SHARED ${library_objects})
set(library_needs PkgConfig::JANSSON PkgConfig::ZLIB PkgConfig::XXHASH PkgConfig::ZSTD PkgConfig::MPFR
    PkgConfig::PCRE2 ${PHEMA_URING_LIBRARY})
if(PHEMA_STATIC)
    if(NOT MPFR_LINK_LIBRARIES MATCHES "[.]a$") # Debian's, some of whose archives cannot be part of a shared library
        set(library_needs ${JANSSON_LINK_LIBRARIES} ${ZLIB_LINK_LIBRARIES} ${XXHASH_LINK_LIBRARIES}
            ${MPFR_LINK_LIBRARIES} ${PCRE2_LINK_LIBRARIES} ${URING_LINK_LIBRARIES})
        # The shared zstd starts threads by functions of a newer glibc than all others need.
        list(APPEND library_needs PkgConfig::ZSTD)
    endif()
    file(WRITE ${PROJECT_BINARY_DIR}/exports.map "{ global: posthoc_ema_*; local: *; };\n")
    target_link_options(libposthoc-ema PRIVATE -Wl,--version-script=${PROJECT_BINARY_DIR}/exports.map -Wl,-s)
endif()
target_link_libraries(libposthoc-ema PRIVATE ${library_needs} Threads::Threads ${CMAKE_DL_LIBS} m
    ${PHEMA_QUADMATH})
if(NOT PHEMA_SANITIZE) # whose functions the program has; a module that is missing above would be noticed at run time
    target_link_options(libposthoc-ema PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(libposthoc-ema PROPERTIES OUTPUT_NAME posthoc-ema LINKER_LANGUAGE C
    VERSION ${PROJECT_VERSION} SOVERSION ${PHEMA_SOVERSION})

# One object with local hidden symbols, so that names of the modules cannot clash with others.
set(archive ${PROJECT_BINARY_DIR}/libposthoc-ema.a)
set(object ${PROJECT_BINARY_DIR}/posthoc-ema.o)
add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${object} ${library_objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} ${object}
    DEPENDS ${library_objects} VERBATIM COMMAND_EXPAND_LISTS)
add_custom_target(libposthoc-ema-static ALL DEPENDS ${archive})
foreach(module ${library_modules})
    add_dependencies(libposthoc-ema-static phema_${module})
endforeach()

file(RELATIVE_PATH PHEMA_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" PHEMA_PC_PREFIX "${PHEMA_PC_PREFIX}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/posthoc-ema.pc.in ${PROJECT_BINARY_DIR}/posthoc-ema.pc @ONLY)

install(TARGETS libposthoc-ema LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
    NAMELINK_COMPONENT development)
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/include/posthoc-ema.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/posthoc-ema.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT development)
