# SPDX-License-Identifier: MIT
# A dynprobe for other distributions (scripts/make-tarball.sh): DP_GLIBC is the root of an older C library with its headers, against
# which everything is compiled and linked, so that no function of a later one can be meant. Other libraries are linked statically; those
# that exist only as shared ones are installed in lib/ beside bin/. The LTTng sink is not part of this: the liblttng-ust that it needs is
# younger than glibc 2.34.

set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
set(DP_GLIBC_LIBRARIES ${DP_GLIBC}/usr/lib/x86_64-linux-gnu)
add_compile_options($<$<COMPILE_LANGUAGE:C>:-isystem${DP_GLIBC}/usr/include/x86_64-linux-gnu> $<$<COMPILE_LANGUAGE:C>:-isystem${DP_GLIBC}/usr/include>)
add_link_options(-B${DP_GLIBC_LIBRARIES} -L${DP_GLIBC_LIBRARIES} -Wl,--sysroot=${DP_GLIBC})
set(DP_GLIBC_ENV ${CMAKE_COMMAND} -E env C_INCLUDE_PATH=${DP_GLIBC}/usr/include/x86_64-linux-gnu:${DP_GLIBC}/usr/include)
set(CMAKE_INSTALL_RPATH $ORIGIN/../lib)

# What the static libraries need in turn; before glibc 2.34 threads and the loader's functions were libraries of their own.
set(libraries)
foreach(name dw elf bz2 lzma zstd z)
  find_library(DP_STATIC_${name} NAMES lib${name}.a REQUIRED)
  string(APPEND libraries " ${DP_STATIC_${name}}")
endforeach()
set(CMAKE_C_STANDARD_LIBRARIES "-Wl,--start-group ${CMAKE_BINARY_DIR}/libnewer.a${libraries} -Wl,--end-group -Wl,--as-needed -lpthread -ldl -lrt -lm")
set(DP_LINKED libelf-dev libdw-dev libbz2-dev liblzma-dev libzstd-dev zlib1g-dev libjansson-dev liblua5.4-dev libzydis-dev)

# The functions of glibc 2.32 that dynprobe uses
execute_process(COMMAND ${CMAKE_C_COMPILER} -dM -E -D_GNU_SOURCE -include errno.h -include signal.h -x c /dev/null OUTPUT_VARIABLE macros)
string(REGEX MATCHALL "#define (E[A-Z0-9]+|SIG[A-Z0-9]+) [0-9]?[0-9]?[0-9]\n" names "${macros}")
list(TRANSFORM names REPLACE "#define (E[A-Z0-9]+) .*" "ERROR(\\1)")
list(TRANSFORM names REPLACE "#define SIG([A-Z0-9]+) .*" "SIGNAL(\\1)")
list(SORT names)
list(JOIN names "\n" names)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/names.inc CONTENT "${names}\n" @ONLY)
add_library(newer STATIC cmake/newer.c)
target_include_directories(newer PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_compile_definitions(newer PRIVATE _GNU_SOURCE)
add_compile_options($<$<COMPILE_LANGUAGE:C>:-include${CMAKE_SOURCE_DIR}/cmake/newer.h>)

# Shared libraries come with the program.
function(dp_install_shared)
  foreach(library ${ARGN})
    if(library MATCHES "\\.so$")
      file(REAL_PATH ${library} file)
      execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${file} OUTPUT_VARIABLE text)
      string(REGEX MATCH "SONAME +([^ \n]+)" _ "${text}")
      install(FILES ${file} DESTINATION lib RENAME ${CMAKE_MATCH_1})
    endif()
  endforeach()
endfunction()
