/* SPDX-License-Identifier: MIT */
/*
 * The parts of CTF 1.8 that metadata and packets share. All alignments are 8 bits, so the packed structs below are the bytes of
 * the stream, and the payload of a record (agent/abi.h) is the payload of an event.
 */
#ifndef DP_OUTPUT_EVENTS_CTF_H
#define DP_OUTPUT_EVENTS_CTF_H

#include "base/buf.h"
#include "output/output.h"

#define DP_CTF_MAGIC    UINT32_C(0xc1fc1fc1)
#define DP_CTF_PROCNAME 17u

struct dp_ctf_packet {
	/* trace.packet.header */
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id;
	/* stream.packet.context */
	uint64_t begin, end;                /* timestamps of the first and the last event */
	uint64_t content_bits, packet_bits; /* equal: packets have no padding */
	uint64_t seq;                       /* counts from 0 */
	uint64_t discarded;                 /* in the stream so far */
} __attribute__((packed));

struct dp_ctf_event {
	/* stream.event.header */
	uint16_t id;
	uint64_t timestamp;
	/* stream.event.context */
	int32_t pid, tid;
	char procname[DP_CTF_PROCNAME]; /* NUL-padded */
} __attribute__((packed));

/* The metadata text of a trace of these classes. */
void dp_ctf_metadata(struct dp_buf *b, const uint8_t uuid[16], const struct dp_event_class *classes, size_t n);

#endif
