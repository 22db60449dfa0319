/* SPDX-License-Identifier: MIT */
/*
 * The stream files of a trace, one for each lane. A file is created at its lane's first event. Where there are many lanes, a new
 * one takes the stream that has been unused for longest, if no event in it is newer: readers open all files of a trace at once.
 */
#ifndef DP_OUTPUT_CTF_FILES_H
#define DP_OUTPUT_CTF_FILES_H

#include "output/ctf/ctf_stream.h"

struct dp_ctf_file;
struct dp_ctf_files {
	int dir;                     /* the trace's directory */
	uint8_t uuid[16];            /* the trace's */
	uint64_t created;            /* time of creation */
	struct dp_ctf_file *of_lane; /* a hash table */
	struct dp_ctf_file *oldest;  /* a list, in the order of their latest use */
	struct dp_ctf_file *latest;  /* the one used last, or NULL */
	struct dp_ctf_file *losses;  /* number 0, without events; NULL as long as no event was lost */
	uint64_t nfiles, nopen;      /* not counting that one; with an open descriptor */
	uint64_t flushes, lost_written;
};

#define DP_CTF_FILES_MANY  512u      /* above this number streams are used again */
#define DP_CTF_STREAM_NAME "events_" /* before a stream's number */

/* The stream for an event of `lane` at `ns`. Valid until the next call. */
struct dp_error *dp_ctf_files_get(struct dp_ctf_files *f, uint64_t lane, uint64_t ns, struct dp_ctf_stream **ret) DP_MUST_CHECK;
/* Writes the complete packets of the stream got last, if they have become too many to keep in memory. */
struct dp_error *dp_ctf_files_spill(struct dp_ctf_files *f) DP_MUST_CHECK;
/* Writes all events, and the number of those lost so far. */
struct dp_error *dp_ctf_files_flush(struct dp_ctf_files *f, uint64_t now, uint64_t lost) DP_MUST_CHECK;
/* Of all streams, with what is not written yet. */
uint64_t dp_ctf_files_size(const struct dp_ctf_files *f);
/* Frees the streams and closes their files; drops what is not written. */
struct dp_error *dp_ctf_files_fini(struct dp_ctf_files *f) DP_MUST_CHECK;

#endif
