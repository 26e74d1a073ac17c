# Flags for every target: the same warnings for gcc and clang, no fast-math anywhere, sanitizers.
add_library(phema_warnings INTERFACE)
target_compile_options(phema_warnings INTERFACE
    "$<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow;-Wundef;-Wvla;-Wformat=2>"
    "$<$<COMPILE_LANGUAGE:C>:-Wcast-qual;-Wwrite-strings;-Wstrict-prototypes;-Wmissing-prototypes>"
    "$<$<COMPILE_LANGUAGE:C>:-Wdouble-promotion>")
if(PHEMA_WERROR)
    target_compile_options(phema_warnings INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()

# Implicit contraction would make results depend on the compiler.
add_compile_options($<$<COMPILE_LANGUAGE:C>:-ffp-contract=off>)
add_compile_definitions(_GNU_SOURCE _FILE_OFFSET_BITS=64)

if(PHEMA_SANITIZE)
    # The address sanitizer finds NULL and ends of objects itself.
    add_compile_options(-fsanitize=${PHEMA_SANITIZE} -fno-sanitize=null,object-size -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${PHEMA_SANITIZE})
endif()
