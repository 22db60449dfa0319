/* SPDX-License-Identifier: MIT */
/*
 * The parts of CTF 1.8 that metadata and packets share. All alignments are 8 bits, so the packed structs below are the bytes of
 * the stream, and the payload of a record (agent/abi.h) is the payload of an event.
 */
#ifndef DP_OUTPUT_CTF_H
#define DP_OUTPUT_CTF_H

#include "base/buf.h"
#include "output/output.h"

#define DP_CTF_MAGIC    UINT32_C(0xc1fc1fc1)
#define DP_CTF_PROCNAME 17u

struct dp_ctf_packet {
	/* trace.packet.header */
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id;
	uint64_t instance; /* number of the stream's file */
	/* stream.packet.context */
	uint64_t begin, end;                /* timestamps of the first and the last event */
	uint64_t content_bits, packet_bits; /* they differ where a packet is padded to the end of its page */
	uint64_t seq;                       /* counts from 0 */
	uint64_t discarded;                 /* in the whole run so far; the stream of losses has it, the others 0 */
	int32_t pid, tid;                   /* of the thread whose events the packet has */
	char procname[DP_CTF_PROCNAME];     /* NUL-padded */
} __attribute__((packed));

/*
 * stream.event.header, as LTTng's: an id of 5 bits and the low 27 bits of the time, in one word; or, if the id is larger or more
 * time has passed than these bits hold, the number 31 in a byte, then the whole id and the whole time.
 */
#define DP_CTF_ID_BITS   5u
#define DP_CTF_ID_LONG   31u
#define DP_CTF_TIME_SPAN (UINT64_C(1) << 27)
struct dp_ctf_short {
	uint32_t id_and_time;
} __attribute__((packed));
struct dp_ctf_long {
	uint8_t is_long; /* DP_CTF_ID_LONG */
	uint32_t id;
	uint64_t timestamp;
} __attribute__((packed));

/* Of a CTF writer: bytes of its streams, with what is not written yet; of its metadata. */
uint64_t dp_ctf_writer_size(const struct dp_writer *w);
uint64_t dp_ctf_metadata_size(const struct dp_writer *w);

/* The metadata text of a trace of these classes. */
void dp_ctf_metadata(struct dp_buf *b, const uint8_t uuid[16], const struct dp_event_class *classes, size_t n);

#endif
