# SPDX-License-Identifier: Apache-2.0
from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class PosthocEma(CMakePackage):
    """Averages of a training's parameters, of any length, made from stored snapshots
    (post-hoc EMA, Karras et al. 2024)."""

    homepage = "https://arxiv.org/abs/2312.02696"

    # The sources are a clone: spack dev-build --source-path . posthoc-ema@0.1.0
    version("0.1.0")

    license("Apache-2.0")

    variant("mpi", default=False, description="Build posthoc-ema-mpi")
    variant("cuda", default=False, description="Build the module for NVIDIA's devices")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cairo+pdf+png")
    depends_on("jansson")
    depends_on("liburing")
    depends_on("mpfr")
    depends_on("openblas")
    depends_on("pcre2")
    depends_on("xxhash")
    depends_on("zlib-api")
    depends_on("zstd")
    depends_on("mpi", when="+mpi")
    depends_on("cuda@12:", when="+cuda")

    def cmake_args(self):
        return [
            self.define("PHEMA_TESTS", False),
            self.define_from_variant("PHEMA_MPI", "mpi"),
            self.define_from_variant("PHEMA_CUDA", "cuda"),
        ]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        program = Executable(self.prefix.bin.join("posthoc-ema"))
        program("gen", "-q", "run")
        program("synth", "-q", "--sigma-rel", "0.1", "run", "out.safetensors")
        program("verify", "out.safetensors")
