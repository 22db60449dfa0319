/* SPDX-License-Identifier: MIT */
/* A shared object that is no module. */
int not_a_module;
