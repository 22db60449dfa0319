/* SPDX-License-Identifier: MIT */
/* Containers in the paths of control groups, as the runtimes write them. */
#include "cli/processes/containers.h"

#include <criterion/criterion.h>
#include <string.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	const char *component, *id, *name;
} parts[] = {
        {ID, ID, ""},                    /* docker, kubepods with cgroupfs */
        {"docker-" ID ".scope", ID, ""}, /* docker with systemd */
        {"libpod-" ID ".scope", ID, ""}, /* podman */
        {"libpod-" ID, ID, ""},          /* podman with cgroupfs */
        {"nerdctl-" ID ".scope", ID, ""},
        {"cri-containerd-" ID ".scope", ID, ""}, /* kubernetes */
        {"crio-" ID ".scope", ID, ""},
        {"kubepods-burstable-pod1_2.slice:cri-containerd:" ID, ID, ""},
        {"libpod-conmon-" ID ".scope", NULL, NULL}, /* its monitor */
        {"crio-conmon-" ID ".scope", NULL, NULL},
        {"lxc.payload.web", "", "web"},
        {"machine-web.scope", "", "web"},
        {"systemd-nspawn@web.service", "", "web"},
        {"x" ID, NULL, NULL},
        {ID "0", NULL, NULL},
        {"0123456789abcdef", NULL, NULL},
        {"nginx.service", NULL, NULL},
        {"session-3.scope", NULL, NULL},
        {"0::", NULL, NULL},
        {"", NULL, NULL},
};

Test(containers, in_paths_of_control_groups)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct dp_container_word word;
		const bool is = dp_container_parse(parts[i].component, strlen(parts[i].component), &word);
		cr_expect_eq(is, parts[i].id != NULL, "%s", parts[i].component);
		if (!is || !parts[i].id)
			continue;
		cr_expect_str_eq(word.id, parts[i].id, "%s", parts[i].component);
		cr_expect_str_eq(word.name, parts[i].name, "%s", parts[i].component);
	}
}

/* The text goes on after the component. */
Test(containers, reads_no_more_than_the_component)
{
	struct dp_container_word word;
	cr_expect_not(dp_container_parse("machine-web.scope", strlen("machine-web"), &word));
	cr_expect_not(dp_container_parse(ID, 63, &word));
	cr_expect(dp_container_parse(ID "/init.scope", 64, &word));
}

Test(containers, refuse_DP_USAGE_of_no_name_and_of_no_user)
{
	struct dp_pid_list list;
	struct dp_error *err = dp_container_find("", &list);
	cr_assert(err && err->tag == DP_TAG_USAGE);
	dp_error_destroy(err);
	err = dp_user_find("no such user", &list);
	cr_assert(err && err->tag == DP_TAG_USAGE);
	dp_error_destroy(err);
}
