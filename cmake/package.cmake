# Packages for Debian and Ubuntu, from the installed files: cpack --config BUILD/CPackConfig.cmake
#   posthoc-ema           the program, its manual, completions, documents and examples
#   posthoc-ema-cuda      the plug-in for NVIDIA's devices, where it was built
#   posthoc-ema-openmpi   posthoc-ema-mpi for Open MPI, and posthoc-ema-mpich for MPICH, where they were built
#   libposthoc-ema0.1     the library;  libposthoc-ema-dev  its header and static library
set(doc ${CMAKE_INSTALL_DATADIR}/doc)
install(FILES README.md CHANGELOG.md DESTINATION ${doc}/posthoc-ema COMPONENT program)
install(DIRECTORY docs DESTINATION ${doc}/posthoc-ema COMPONENT program)
install(DIRECTORY examples DESTINATION ${doc}/posthoc-ema COMPONENT program USE_SOURCE_PERMISSIONS)
foreach(trainer edm2 ema_pytorch posthoc_ema lightning) # what the guide runs on
    install(DIRECTORY fixtures/${trainer} DESTINATION ${doc}/posthoc-ema/fixtures COMPONENT program)
endforeach()
foreach(trainer titan flux_action fp8_block)
    install(DIRECTORY fixtures/trainers/${trainer} DESTINATION ${doc}/posthoc-ema/fixtures/trainers COMPONENT program)
endforeach()
install(FILES LICENSE RENAME copyright DESTINATION ${doc}/posthoc-ema COMPONENT program)

set(CPACK_COMPONENTS_ALL program debian)
if(TARGET libposthoc-ema)
    list(APPEND CPACK_COMPONENTS_ALL library development)
endif()
set(library_package libposthoc-ema${PHEMA_SOVERSION})
install(FILES LICENSE RENAME copyright DESTINATION ${doc}/${library_package} COMPONENT library)
install(FILES LICENSE RENAME copyright DESTINATION ${doc}/libposthoc-ema-dev COMPONENT development)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME posthoc-ema)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
# Who builds a package answers for it, as with Debian's own tools; its home is where the sources came from.
function(ask_git out)
    execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} ${ARGN} OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    set(${out} "${said}" PARENT_SCOPE)
endfunction()
set(name $ENV{DEBFULLNAME})
set(email $ENV{DEBEMAIL})
if(NOT name OR NOT email)
    ask_git(name config user.name)
    ask_git(email config user.email)
endif()
if(NOT name OR NOT email)
    ask_git(name log -1 --format=%an)
    ask_git(email log -1 --format=%ae)
endif()
if(NOT name OR NOT email) # an archive of the sources
    set(name "posthoc-ema")
    cmake_host_system_information(RESULT email QUERY FQDN)
    string(PREPEND email "root@")
endif()
ask_git(home remote get-url origin)
string(REGEX REPLACE "\\.git$" "" home "${home}")
if(NOT home MATCHES "^https://")
    set(home https://arxiv.org/abs/2312.02696) # the paper
endif()
set(PHEMA_MAINTAINER "${name} <${email}>" CACHE STRING "Maintainer of packages")
set(PHEMA_HOMEPAGE "${home}" CACHE STRING "Homepage of packages")
set(CPACK_PACKAGE_CONTACT "${PHEMA_MAINTAINER}")
set(CPACK_PACKAGE_HOMEPAGE_URL "${PHEMA_HOMEPAGE}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# dpkg-shlibdeps does not see libraries that are loaded when they are needed.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "libopenblas0, libcairo2")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "libopenblas0")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME posthoc-ema)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION
    "averages of a training's parameters, made from its snapshots
Post-hoc EMA (Karras et al. 2024) stores a few snapshots of short averages
while training; any other average is later a weighted sum of them. This
program solves for the weights, predicts the error, and sums checkpoints of
any size in constant memory.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION
    "averages of a training's parameters, made from its snapshots - library
What posthoc-ema does, for programs that do it in their own process.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libposthoc-ema-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library_package} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
    "averages of a training's parameters, made from its snapshots - development
Header, pkg-config file and static library of libposthoc-ema.")

if(TARGET phema_cuda_module OR TARGET posthoc-ema-cuda)
    install(FILES LICENSE RENAME copyright DESTINATION ${doc}/posthoc-ema-cuda COMPONENT cuda)
    list(APPEND CPACK_COMPONENTS_ALL cuda)
    set(CPACK_DEBIAN_CUDA_PACKAGE_NAME posthoc-ema-cuda)
    # NVIDIA's libraries come from packages of many names, or from none.
    set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF)
    set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "posthoc-ema (= ${PROJECT_VERSION}), libc6")
    set(CPACK_DEBIAN_CUDA_DESCRIPTION
        "averages of a training's parameters, made from its snapshots - CUDA
Lets posthoc-ema run on NVIDIA's devices; needs their driver and CUDA's
libraries.")
endif()

# Both may be installed: the name posthoc-ema-mpi is an alternative, as mpirun is.
set(title_openmpi "Open MPI")
set(title_mpich MPICH)
set(priority_openmpi 50)
set(priority_mpich 40)
set(script_permissions OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
foreach(library openmpi mpich)
    if(NOT TARGET mpi_${library})
        continue()
    endif()
    set(scripts ${PROJECT_BINARY_DIR}/debian/${library})
    set(program /usr/bin/posthoc-ema-mpi.${library})
    file(GENERATE OUTPUT ${scripts}/postinst CONTENT "#!/bin/sh
set -e
[ \"$1\" != configure ] ||
    update-alternatives --install /usr/bin/posthoc-ema-mpi posthoc-ema-mpi ${program} ${priority_${library}}
" FILE_PERMISSIONS ${script_permissions})
    file(GENERATE OUTPUT ${scripts}/prerm CONTENT "#!/bin/sh
set -e
[ \"$1\" = upgrade ] || update-alternatives --remove posthoc-ema-mpi ${program}
" FILE_PERMISSIONS ${script_permissions})
    install(FILES LICENSE RENAME copyright DESTINATION ${doc}/posthoc-ema-${library} COMPONENT ${library} EXCLUDE_FROM_ALL)
    list(APPEND CPACK_COMPONENTS_ALL ${library})
    string(TOUPPER ${library} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME posthoc-ema-${library})
    # mpirun, and the manual.
    string(REPLACE openmpi openmpi-bin launcher ${library})
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "posthoc-ema (= ${PROJECT_VERSION}), ${launcher}")
    set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${scripts}/postinst;${scripts}/prerm")
    set(CPACK_DEBIAN_${upper}_DESCRIPTION
        "averages of a training's parameters, made from its snapshots - MPI
posthoc-ema-mpi, with which processes on several machines share the work
under the mpirun of ${title_${library}}.")
endforeach()

include(CPack)
foreach(component program library development cuda openmpi mpich)
    cpack_add_component_group(${component})
    cpack_add_component(${component} GROUP ${component})
endforeach()
cpack_add_component(debian GROUP program)
