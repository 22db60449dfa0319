/* SPDX-License-Identifier: MIT */
/* A shared object that is not a module. */
int not_a_module;
