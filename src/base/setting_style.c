// SPDX-License-Identifier: Apache-2.0
/* setting_style.c - how the program names settings. The library has a value of its own, which the
 * linker prefers. A file of its own, since compilers read constants of the same file. */
#include "phema/setting.h"

__attribute__((weak)) const bool phema_settings_are_options = true;
