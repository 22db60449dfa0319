/* SPDX-License-Identifier: MIT */
/* Modules in Lua: they see the snapshot, add what they may, and get errors for wrong use. */
#include "lua_run.h"

TestSuite(lua, .timeout = 60);

Test(lua, every_object_says_what_the_snapshot_has)
{
	lua_expect("objects");
}

Test(lua, iterators_keep_no_state)
{
	lua_expect("iterate");
}

Test(lua, reads_give_the_front_of_what_is_there)
{
	lua_expect("reads");
}

Test(lua, modules_add_variables_frames_and_notes)
{
	lua_expect("make");
}

Test(lua, both_spellings_are_known)
{
	lua_expect("aliases");
}

Test(lua, typed_values_are_walked_and_say_where_they_end)
{
	lua_expect("values");
}
