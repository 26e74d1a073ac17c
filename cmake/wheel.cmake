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
install(FILES ${PHEMA_MAN} DESTINATION ${data}/man/man1 COMPONENT wheel)
set(completions ${PROJECT_BINARY_DIR}/completions)
install(FILES ${completions}/bash RENAME posthoc-ema DESTINATION ${data}/bash-completion/completions COMPONENT wheel)
install(FILES ${completions}/fish RENAME posthoc-ema.fish DESTINATION ${data}/fish/vendor_completions.d COMPONENT wheel)
install(FILES ${completions}/zsh RENAME _posthoc-ema DESTINATION ${data}/zsh/site-functions COMPONENT wheel)
