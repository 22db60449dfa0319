# SPDX-License-Identifier: MIT
# Warnings, hardening and sanitizers for every target of the project; the rooms, the agent and the LTTng sink.

set(DP_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wno-sign-conversion)
if(DP_WERROR)
  list(APPEND DP_WARNINGS -Werror)
endif()

function(dp_target_options target)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:${DP_WARNINGS}>)
  if(DP_FUZZ) # instruments the rooms for libFuzzer
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:-fsanitize=fuzzer-no-link>)
  endif()
  if(DP_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=address,undefined -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  endif()
endfunction()

# Sets DP_CAPSTONE, the libraries to link for Capstone. Its shared library has 77,000 relocations for the name tables of twelve
# architectures, which every start would apply: most of the dynamic linking. From the static library only x86's objects are linked: in
# cs.o the others become weak references, so they are NULL, as in a Capstone that was built without them.
function(dp_capstone)
  set(DP_CAPSTONE PkgConfig::CAPSTONE PARENT_SCOPE)
  find_library(CAPSTONE_ARCHIVE libcapstone.a HINTS ${CAPSTONE_LIBRARY_DIRS} ${CAPSTONE_LIBDIR})
  if(DP_SHARED_CAPSTONE OR NOT CAPSTONE_ARCHIVE OR NOT CMAKE_OBJCOPY)
    return()
  endif()
  set(object ${CMAKE_BINARY_DIR}/capstone-x86.o)
  execute_process(COMMAND ${CMAKE_AR} p ${CAPSTONE_ARCHIVE} cs.o OUTPUT_FILE ${object} RESULT_VARIABLE failed)
  if(NOT failed)
    execute_process(COMMAND ${CMAKE_OBJCOPY} -w --weaken-symbol=!X86_* --weaken-symbol=!cs_* --weaken-symbol=*_global_init --weaken-symbol=*_option ${object}
                    RESULT_VARIABLE failed)
  endif()
  if(NOT failed)
    set(DP_CAPSTONE ${object} ${CAPSTONE_ARCHIVE} PARENT_SCOPE)
  endif()
endfunction()

# dp_room(name lower-rooms... [LIBS libraries...]): folder `name` as a static library.
function(dp_room name)
  cmake_parse_arguments(ROOM "" "" "LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.c)
  list(FILTER sources EXCLUDE REGEX "/examples/")
  if(NOT sources)
    set(sources ${CMAKE_SOURCE_DIR}/cmake/empty.c)
  endif()
  add_library(dp_${name} STATIC ${sources})
  dp_target_options(dp_${name})
  foreach(lower ${ROOM_UNPARSED_ARGUMENTS})
    target_link_libraries(dp_${name} PUBLIC dp_${lower})
  endforeach()
  target_link_libraries(dp_${name} PUBLIC ${ROOM_LIBS})
endfunction()

# The program exports the functions of pmodule.h, and nothing else, to the C pmodules that it loads. The list is read from the header. The linker
# must take these functions from the rooms' libraries even if nothing in the program calls them.
function(dp_export_pmodule target)
  set(header ${CMAKE_SOURCE_DIR}/pmodules/pmodule.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  file(STRINGS ${header} lines REGEX "^PMODULE_API ")
  set(names)
  foreach(line IN LISTS lines)
    if(line MATCHES "^PMODULE_API [^(]*[ *]([a-z_0-9]+)\\(")
      list(APPEND names ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(JOIN names " " words)
  list(JOIN names ";\n" clauses)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/pmodule.extern.lds CONTENT "EXTERN(${words})\n" @ONLY)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/pmodule.list CONTENT "{\n${clauses};\n};\n" @ONLY)
  target_link_options(${target} PRIVATE -Wl,--dynamic-list=${CMAKE_BINARY_DIR}/pmodule.list ${CMAKE_BINARY_DIR}/pmodule.extern.lds)
endfunction()

# The agent: freestanding, general registers only, no data, no relocation. agent/check.sh checks that.
set(DP_AGENT_FLAGS
    -std=gnu11 -O2 -g -ffreestanding -fno-builtin -mgeneral-regs-only -fPIC -fvisibility=hidden
    -fno-stack-protector -fno-plt -mno-red-zone -fcf-protection=none -fno-asynchronous-unwind-tables
    -fno-tree-loop-distribute-patterns -fno-jump-tables -fomit-frame-pointer ${DP_WARNINGS})
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND DP_AGENT_FLAGS -mstringop-strategy=unrolled_loop) # rep stos depends on the program's direction flag
else()
  list(REMOVE_ITEM DP_AGENT_FLAGS -fno-tree-loop-distribute-patterns)
endif()

function(dp_agent)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/agent/*.c ${CMAKE_SOURCE_DIR}/agent/*.S)
  list(FILTER sources EXCLUDE REGEX "/agent/lttng/")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/agent/*.h)
  set(objects)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/agent)
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME)
    set(object ${CMAKE_BINARY_DIR}/agent/${stem}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_C_COMPILER} ${DP_AGENT_FLAGS} -I${CMAKE_SOURCE_DIR} -c ${source} -o ${object}
      DEPENDS ${source} ${headers} COMMENT "Building agent object ${stem}" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(agent ${CMAKE_BINARY_DIR}/agent/agent.so)
  add_custom_command(OUTPUT ${agent}
    COMMAND ${CMAKE_C_COMPILER} -nostdlib -shared -Wl,-Bsymbolic,-z,now,-z,norelro,--no-undefined,-z,text,-z,noexecstack
            -Wl,-T,${CMAKE_SOURCE_DIR}/agent/agent.lds -o ${agent} ${objects}
    COMMAND sh ${CMAKE_SOURCE_DIR}/agent/check.sh ${agent}
    DEPENDS ${objects} ${CMAKE_SOURCE_DIR}/agent/agent.lds ${CMAKE_SOURCE_DIR}/agent/check.sh
    COMMENT "Linking and checking the agent" VERBATIM)
  add_custom_target(dp_agent_blob DEPENDS ${agent})
endfunction()

# The tool contains the agent in its read-only data (symbols dp_agent_blob, dp_agent_blob_end).
function(dp_embed_agent target)
  set(stub ${CMAKE_BINARY_DIR}/agent/embed.S)
  file(WRITE ${stub} "\t.section .rodata\n\t.balign 16\n\t.globl dp_agent_blob, dp_agent_blob_end\ndp_agent_blob:\n\t.incbin \"${CMAKE_BINARY_DIR}/agent/agent.so\"\ndp_agent_blob_end:\n\t.section .note.GNU-stack,\"\",@progbits\n")
  target_sources(${target} PRIVATE ${stub})
  set_source_files_properties(${stub} TARGET_DIRECTORY ${target} PROPERTIES OBJECT_DEPENDS ${CMAKE_BINARY_DIR}/agent/agent.so)
  add_dependencies(${target} dp_agent_blob)
endfunction()

# Templates, styles and scripts of the pages become data of the room that writes them: dp_embed_pages(target folder name:file...) makes
# dp_FOLDER_NAME and dp_FOLDER_NAME_end of share/FOLDER/FILE.
function(dp_embed_pages target folder)
  set(stub ${CMAKE_BINARY_DIR}/pages-${folder}.S)
  set(text "\t.section .rodata\n")
  set(files)
  foreach(part ${ARGN})
    string(REPLACE ":" ";" pair ${part})
    list(GET pair 0 name)
    list(GET pair 1 file)
    set(name dp_${folder}_${name})
    list(APPEND files ${CMAKE_SOURCE_DIR}/share/${folder}/${file})
    string(APPEND text "\t.globl ${name}, ${name}_end\n${name}:\n\t.incbin \"${CMAKE_SOURCE_DIR}/share/${folder}/${file}\"\n${name}_end:\n")
  endforeach()
  string(APPEND text "\t.section .note.GNU-stack,\"\",@progbits\n")
  file(WRITE ${stub} "${text}")
  target_sources(${target} PRIVATE ${stub})
  set_source_files_properties(${stub} TARGET_DIRECTORY ${target} PROPERTIES OBJECT_DEPENDS "${files}")
endfunction()

# The names of the numbers in system calls, from the system's headers.
function(dp_call_names target)
  set(made ${CMAKE_BINARY_DIR}/call_names.c)
  set(from ${CMAKE_SOURCE_DIR}/scripts/call-names.sh ${CMAKE_SOURCE_DIR}/output/calls/names.list ${CMAKE_SOURCE_DIR}/output/calls/headers.h)
  add_custom_command(OUTPUT ${made} COMMAND ${DP_GLIBC_ENV} sh ${CMAKE_SOURCE_DIR}/scripts/call-names.sh ${CMAKE_C_COMPILER} ${CMAKE_SOURCE_DIR} ${made}
    DEPENDS ${from} COMMENT "Making the names of system calls' values" VERBATIM)
  target_sources(${target} PRIVATE ${made})
endfunction()

# The LTTng sink: a hosted shared object for the target, without the tool's sanitizers. enter.c runs before the vector state is saved.
set(DP_SINK_FLAGS
    -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden -fno-stack-protector -fno-plt -fcf-protection=none -fomit-frame-pointer
    -U_FORTIFY_SOURCE ${DP_WARNINGS})

function(dp_lttng_sink)
  pkg_check_modules(LTTNG_UST REQUIRED IMPORTED_TARGET lttng-ust)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/agent/lttng/*.c ${CMAKE_SOURCE_DIR}/agent/lttng/*.S)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/agent/*.h)
  set(objects)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/agent/lttng)
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME)
    set(object ${CMAKE_BINARY_DIR}/agent/lttng/${stem}.o)
    set(more)
    if(stem STREQUAL "enter.c")
      set(more -mgeneral-regs-only)
    endif()
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_C_COMPILER} ${DP_SINK_FLAGS} ${more} ${LTTNG_UST_CFLAGS} -I${CMAKE_SOURCE_DIR} -c ${source} -o ${object}
      DEPENDS ${source} ${headers} COMMENT "Building LTTng sink object ${stem}" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(sink ${CMAKE_BINARY_DIR}/agent/lttng/libdynprobe-lttng.so)
  add_custom_command(OUTPUT ${sink}
    COMMAND ${CMAKE_C_COMPILER} -shared -s -Wl,-soname,libdynprobe-lttng.so,-Bsymbolic,-z,nodelete,-z,now,-z,relro,--no-undefined,-z,text,-z,noexecstack
            -o ${sink} ${objects} ${LTTNG_UST_LDFLAGS} -llttng-ust-tracepoint
    COMMAND sh ${CMAKE_SOURCE_DIR}/agent/lttng/check.sh ${sink} ${CMAKE_BINARY_DIR}/agent/lttng/enter.c.o
    DEPENDS ${objects} ${CMAKE_SOURCE_DIR}/agent/lttng/check.sh COMMENT "Linking and checking the LTTng sink" VERBATIM)
  add_custom_target(dp_sink_so DEPENDS ${sink})

  # The tool contains it like the agent (symbols dp_sink_so, dp_sink_so_end).
  set(stub ${CMAKE_BINARY_DIR}/agent/lttng/embed.S)
  file(WRITE ${stub} "\t.section .rodata\n\t.balign 16\n\t.globl dp_sink_so, dp_sink_so_end\ndp_sink_so:\n\t.incbin \"${sink}\"\ndp_sink_so_end:\n\t.section .note.GNU-stack,\"\",@progbits\n")
  target_sources(dp_injector PRIVATE ${stub})
  set_source_files_properties(${stub} TARGET_DIRECTORY dp_injector PROPERTIES OBJECT_DEPENDS ${sink})
  add_dependencies(dp_injector dp_sink_so)
endfunction()
