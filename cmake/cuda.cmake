# The CUDA plug-in: a separate shared library, which the program opens when a device is wanted. The program
# itself uses only the header of the plug-in's table.
# AUTO builds it if a toolkit from 12.0 on with cuBLAS, cuSOLVER and a host compiler is found.
set(PHEMA_HAVE_CUDA OFF)
set(reason "")

macro(phema_no_cuda why)
    if(PHEMA_CUDA STREQUAL "ON")
        message(FATAL_ERROR "PHEMA_CUDA=ON: ${why}")
    endif()
    set(reason "${why}")
endmacro()

if(PHEMA_CUDA STREQUAL "OFF")
    phema_no_cuda("PHEMA_CUDA=OFF")
elseif(PHEMA_SANITIZE)
    phema_no_cuda("not with sanitizers")
else()
    set(fetched ${PROJECT_SOURCE_DIR}/build/cuda-toolkit/toolkit) # by scripts/cuda-toolkit
    if(NOT DEFINED CUDAToolkit_ROOT AND NOT DEFINED ENV{CUDAToolkit_ROOT} AND EXISTS ${fetched}/bin/nvcc)
        set(CUDAToolkit_ROOT ${fetched})
    endif()
    find_package(CUDAToolkit 12.0 QUIET)
    if(NOT CUDAToolkit_FOUND)
        phema_no_cuda("no CUDA toolkit from 12.0 on was found")
    elseif(NOT TARGET CUDA::cublas OR NOT TARGET CUDA::cusolver OR NOT TARGET CUDA::cudart_static)
        phema_no_cuda("the CUDA toolkit ${CUDAToolkit_VERSION} lacks cuBLAS, cuSOLVER or the runtime")
    else()
        if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
            set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
        endif()
        # Code for every generation from Ampere on, and PTX of the newest for later ones.
        # sm_100 is known since 12.8.
        if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
            if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
                set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)
            else()
                set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
            endif()
        endif()
        include(CheckLanguage)
        check_language(CUDA)
        if(NOT CMAKE_CUDA_COMPILER)
            phema_no_cuda("nvcc of the CUDA toolkit ${CUDAToolkit_VERSION} does not compile (it needs g++)")
        else()
            enable_language(CUDA)
            set(PHEMA_HAVE_CUDA ON)
        endif()
    endif()
endif()

if(PHEMA_HAVE_CUDA)
    message(STATUS "CUDA module: CUDA ${CUDAToolkit_VERSION}, ${CMAKE_CUDA_ARCHITECTURES}")
    add_library(phema_cuda_module MODULE src/gpu/cuda/plugin.c src/gpu/cuda/runtime.c src/gpu/cuda/cublas.c
        src/gpu/cuda/cusolver.c src/gpu/cuda/kernels.cu)
    target_include_directories(phema_cuda_module PRIVATE include src/gpu/cuda)
    target_compile_definitions(phema_cuda_module PRIVATE
        PHEMA_CUDA_TOOLKIT="CUDA ${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
    target_link_libraries(phema_cuda_module PRIVATE phema_warnings
        CUDA::cublas CUDA::cusolver CUDA::cudart_static)
    set(compression "")
    if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
        set(compression --compress-mode=size)
    endif()
    # No implicit contraction, as in C.
    target_compile_options(phema_cuda_module PRIVATE
        $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false>
        "$<$<COMPILE_LANGUAGE:CUDA>:${compression}>"
        $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-fno-exceptions>
        $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${PHEMA_WERROR}>>:-Werror=all-warnings>
        $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${PHEMA_WERROR}>>:-Xcompiler=-Werror>)
    # Exports only the table; unresolved symbols are link errors.
    target_link_options(phema_cuda_module PRIVATE -Wl,--exclude-libs,ALL -Wl,--no-undefined)
    set_target_properties(phema_cuda_module PROPERTIES
        PREFIX "" OUTPUT_NAME posthoc-ema-cuda LINKER_LANGUAGE C
        C_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
        CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF CUDA_RUNTIME_LIBRARY None
        INSTALL_RPATH "$ORIGIN;${CUDAToolkit_LIBRARY_DIR};/usr/local/cuda/lib64")
    install(TARGETS phema_cuda_module
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/posthoc-ema COMPONENT cuda)
else()
    message(STATUS "CUDA module: not built (${reason})")
endif()
