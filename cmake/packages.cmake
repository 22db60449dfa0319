# SPDX-License-Identifier: MIT
# What `make deb` and `make tarball` pack, with CPack, from a finished build (scripts/make-packages.sh, scripts/make-tarball.sh).
# Components: `dynprobe`, and `pmodule`, which is what building modules in C needs. docs/install.md describes both for users.

set(DP_MAINTAINER "dynprobe maintainers <maintainers@dynprobe.example>" CACHE STRING "Who answers for the packages: name and address")

install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md PATTERN *.svg)

# The terms of the libraries that are linked statically (decision 0053)
foreach(library libcapstone-dev libiberty-dev ${DP_LINKED})
  if(EXISTS /usr/share/doc/${library}/copyright)
    install(FILES /usr/share/doc/${library}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR}/linked RENAME ${library})
  endif()
endforeach()

# What Debian wants in addition: a copyright file and a changelog, by the name of each package.
file(READ LICENSE terms)
string(REGEX REPLACE "^[^\n]*\n\n[^\n]*\n\n" "" terms "${terms}") # the title and the authors have fields of their own
string(STRIP "${terms}" terms)
string(REPLACE "\n\n" "\n.\n" terms "${terms}")
string(REPLACE "\n" "\n " DP_LICENCE " ${terms}")
configure_file(packaging/copyright.in copyright @ONLY)
find_program(GZIP gzip REQUIRED)
add_custom_command(OUTPUT changelog.gz COMMAND sh -c "'${GZIP}' -9nc '${CMAKE_SOURCE_DIR}/packaging/changelog' >changelog.gz"
                   DEPENDS packaging/changelog COMMENT "Compressing the changelog" VERBATIM)
add_custom_target(changelog ALL DEPENDS changelog.gz)
foreach(component dynprobe pmodule)
  set(package ${component})
  if(component STREQUAL pmodule)
    set(package dynprobe-dev)
  endif()
  install(FILES ${CMAKE_BINARY_DIR}/copyright ${CMAKE_BINARY_DIR}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()

set(CPACK_PACKAGE_NAME dynprobe)
set(CPACK_PACKAGE_CONTACT "${DP_MAINTAINER}")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
string(TOLOWER "dynprobe-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" CPACK_PACKAGE_FILE_NAME)
if(NOT DP_GLIBC)
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
endif()
set(CPACK_COMPONENTS_ALL dynprobe pmodule)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_DYNPROBE_PACKAGE_NAME dynprobe)
set(CPACK_DEBIAN_DYNPROBE_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_DYNPROBE_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DYNPROBE_PACKAGE_RECOMMENDS "lttng-tools, libbabeltrace2-0")
set(CPACK_DEBIAN_DYNPROBE_PACKAGE_SUGGESTS "gdb, dynprobe-dev")
set(CPACK_DEBIAN_PMODULE_PACKAGE_NAME dynprobe-dev)
set(CPACK_DEBIAN_PMODULE_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PMODULE_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PMODULE_PACKAGE_DEPENDS "dynprobe (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DYNPROBE_DESCRIPTION
"insert probes into running programs
dynprobe shows what a running program does: calls of functions, single
instructions and source lines, system calls and USDT markers, with arguments,
variables and backtraces. The program is neither recompiled nor restarted, and
no kernel module is needed.

Probes are jumps, so a hit costs nanoseconds. Results are live text, JSON,
aggregations that the program computes itself, or traces that the tools of
LTTng read. When dynprobe detaches, the program's code is as it was.

It also takes snapshots of a process: threads, frames and variables in a
file, which modules in Lua and C analyse.")
set(CPACK_COMPONENT_PMODULE_DESCRIPTION
"insert probes into running programs (modules in C)
The header pmodule.h and a pkg-config file, to build modules in C that analyse
snapshots of dynprobe. Modules in Lua do not need this package.")
include(CPack)
