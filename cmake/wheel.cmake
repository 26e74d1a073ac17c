# PHEMA_WHEEL: what scikit-build-core packs (pyproject.toml) as the component "wheel": the program, which needs
# libc alone; the library beside the package posthocema, with shared libraries that auditwheel adds to the
# wheel (scripts/wheel); manual and completions.
include(cmake/library.cmake)

set(data ${SKBUILD_DATA_DIR}/share)
install(TARGETS posthoc-ema DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel)
# A wheel has no links: the library has the name that the loader and posthocema look for.
install(FILES $<TARGET_FILE:libposthoc-ema> RENAME libposthoc-ema.so.${PHEMA_SOVERSION}
    DESTINATION ${SKBUILD_PLATLIB_DIR}/posthocema COMPONENT wheel
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(FILES ${PHEMA_MAN1} DESTINATION ${data}/man/man1 COMPONENT wheel)
install(FILES ${PHEMA_MAN7} DESTINATION ${data}/man/man7 COMPONENT wheel)
set(completions ${PROJECT_SOURCE_DIR}/completions)
install(FILES ${completions}/posthoc-ema.bash RENAME posthoc-ema DESTINATION ${data}/bash-completion/completions COMPONENT wheel)
install(FILES ${completions}/posthoc-ema.fish DESTINATION ${data}/fish/vendor_completions.d COMPONENT wheel)
install(FILES ${completions}/posthoc-ema.zsh RENAME _posthoc-ema DESTINATION ${data}/zsh/site-functions COMPONENT wheel)

# The libraries that are part of the program, beside their licences.
get_property(archives GLOBAL PROPERTY PHEMA_ARCHIVES)
set(libraries "")
foreach(archive ${archives})
    get_filename_component(name ${archive} NAME_WLE)
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/licenses/${name}.txt)
        message(FATAL_ERROR "${archive} becomes part of the wheel, and licenses/ has no ${name}.txt")
    endif()
    list(APPEND libraries ${name})
endforeach()
list(REMOVE_DUPLICATES libraries)
list(JOIN libraries "\n" libraries)
file(WRITE ${PROJECT_BINARY_DIR}/libraries "${libraries}\n")
install(FILES ${PROJECT_BINARY_DIR}/libraries DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT wheel)
