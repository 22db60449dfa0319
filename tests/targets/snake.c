/* SPDX-License-Identifier: MIT */
/*
 * snake healthy|ring|garbage [SEED]: looks like a Python 3.11 whose objects have another layout than CPython's, so that only its debug
 * information tells it. healthy: three frames. ring: as that, but the frames, threads and interpreters form rings. garbage: 16 threads
 * whose frames are damaged, and lead to random words: most of these are pointers to each other or to a type.
 */
#include "target.h"

#include <pthread.h>

typedef struct _object PyObject;
typedef struct _typeobject PyTypeObject;
typedef struct _is PyInterpreterState;
typedef struct _ts PyThreadState;
struct _object {
	long ob_refcnt;
	PyTypeObject *ob_type;
};
struct _typeobject {
	PyObject base;
	unsigned long other[9], tp_flags;
	const char *tp_name;
};
typedef struct {
	PyObject base;
	long size, hash;
	unsigned state;
} PyASCIIObject;
typedef struct {
	PyASCIIObject base;
	long utf8_length[4];
} PyCompactUnicodeObject;
typedef struct {
	PyObject base;
	long ob_size;
	PyObject *ob_item[4];
} Tuple;
typedef struct {
	PyObject base;
	long ob_size, hash;
	char ob_sval[24];
} Bytes;
typedef struct {
	PyASCIIObject base;
	char data[24];
} Ascii;
typedef struct {
	PyObject base;
	long other[3];
	PyObject *co_filename, *co_qualname, *co_localsplusnames, *co_linetable;
	int co_nlocalsplus, co_firstlineno;
	char co_code_adaptive[16];
} PyCodeObject;
typedef struct _PyInterpreterFrame {
	struct _PyInterpreterFrame *previous;
	PyCodeObject *f_code;
	unsigned short *prev_instr;
	char owner;
	_Bool is_entry;
	PyObject *localsplus[2];
} Frame;
typedef struct _PyCFrame {
	struct _PyCFrame *previous;
	Frame *current_frame;
} _PyCFrame;
struct _ts {
	unsigned long thread_id, other[5];
	PyInterpreterState *interp;
	PyThreadState *next;
	_PyCFrame *cframe;
};
struct _is {
	long other[7];
	PyInterpreterState *next;
	struct {
		PyThreadState *head;
	} threads;
};
typedef struct {
	long other[9];
	struct {
		PyInterpreterState *head;
	} interpreters;
} _PyRuntimeState;

enum { THREADS = 16, WORDS = 8192, STR = 1 << 28, COMPACT_ASCII = 1 << 2 | 1 << 5 | 1 << 6 };
#define TYPE(flag, name) {.tp_flags = (flag), .tp_name = (name)}
static PyTypeObject types[] = {TYPE(STR, "str"), TYPE(1 << 27, "bytes"), TYPE(1 << 26, "tuple"), TYPE(0, "code"), TYPE(1 << 24, "int"),
                               TYPE(1 << 25, "list"), TYPE(1 << 29, "dict"), TYPE(0, "cell"), TYPE(0, "float"), TYPE(1 << 24, "bool")};
enum { STRING, BYTES, TUPLE, CODE, NTYPES = sizeof(types) / sizeof(*types) };

_PyRuntimeState _PyRuntime;
const unsigned long Py_Version = 0x030b02f0;
__attribute__((used)) static PyCompactUnicodeObject any_string; /* so that its type is in the debug information */
static PyInterpreterState interpreter;
static PyThreadState states[THREADS];
static uint64_t heap[THREADS][WORDS];
static const char *mode;
static long seed;

static PyObject *string(Ascii *s, const char *text)
{
	s->base = (PyASCIIObject){.base = {1, &types[STRING]}, .size = (long)strlen(text), .state = COMPACT_ASCII};
	strcpy(s->data, text);
	return &s->base.base;
}

/* A frame at line 10 + 5: one entry of the line table, with a delta of 5 lines (code 13). */
static Frame *frame(Frame *f, const char *name, Frame *previous)
{
	Ascii *texts = calloc(4, sizeof(*texts));
	Tuple *names = calloc(1, sizeof(*names));
	Bytes *lines = calloc(1, sizeof(*lines));
	PyCodeObject *code = calloc(1, sizeof(*code));
	*names = (Tuple){.base = {1, &types[TUPLE]}, .ob_size = 2, .ob_item = {string(&texts[0], "v"), string(&texts[1], "w")}};
	*lines = (Bytes){.base = {1, &types[BYTES]}, .ob_size = 2, .ob_sval = {(char)(0x80 | 13 << 3 | 7), 5 << 1}};
	*code = (PyCodeObject){.base = {1, &types[CODE]}, .co_filename = string(&texts[2], "snake.py"), .co_qualname = string(&texts[3], name)};
	code->co_localsplusnames = &names->base;
	code->co_linetable = &lines->base;
	code->co_nlocalsplus = 2;
	code->co_firstlineno = 10;
	*f = (Frame){.previous = previous, .f_code = code, .prev_instr = (unsigned short *)code->co_code_adaptive, .localsplus = {&names->base, NULL}};
	return f;
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	return *x ^= *x << 17;
}

/* Objects of 32 bytes, most of which have a type. */
static void fill_heap(uint64_t *at, uint64_t *x)
{
	for (size_t i = 0; i < WORDS; i++) {
		const uint64_t r = next_random(x), object = (uintptr_t)&at[r >> 20 & (WORDS - 4)], type = (uintptr_t)&types[(r >> 40) % NTYPES];
		const uint64_t choices[8] = {object, object, object, object, r >> 40 & 31, r >> 40 & 0xffff, r, object + (r & 15)};
		at[i] = i % 4 == 1 && (r & 7) ? type : choices[r >> 10 & 7];
	}
}

/* Makes some fields of the frames, or what they point to, random. */
static void damage(Frame *frames, uint64_t *at, uint64_t *x)
{
	for (int i = 0; i < 3; i++) {
		Bytes *lines = (Bytes *)frames[i].f_code->co_linetable;
		PyObject **fields[] = {&frames[i].f_code->co_localsplusnames, &frames[i].f_code->co_linetable, &frames[i].f_code->co_filename};
		for (size_t k = 0; k < sizeof(lines->ob_sval); k++)
			lines->ob_sval[k] = (char)next_random(x);
		lines->ob_size = (long)(next_random(x) % 30);
		frames[i].prev_instr += next_random(x) % 64;
		frames[i].localsplus[0] = (PyObject *)&at[next_random(x) & (WORDS - 4)];
		frames[i].localsplus[1] = (PyObject *)&at[next_random(x) & (WORDS - 4)];
		if (next_random(x) & 1)
			frames[i].f_code->co_nlocalsplus = (int)(next_random(x) % 70000) - 100;
		if (next_random(x) & 1)
			*fields[next_random(x) % 3] = (PyObject *)&at[next_random(x) & (WORDS - 4)];
	}
	if (next_random(x) & 1)
		frames[next_random(x) % 3].previous = (Frame *)&at[next_random(x) & (WORDS - 1)];
	if (next_random(x) & 1)
		frames[next_random(x) % 3].owner = 3;
}

/* What the real one is called, for the place of the Python frames. */
TARGET_PROBED void _PyEval_EvalFrameDefault(PyThreadState *state, uint64_t *garbage)
{
	Frame frames[3] = {0};
	_PyCFrame root = {0}, cframe = {.previous = &root};
	cframe.current_frame = frame(&frames[2], "third", frame(&frames[1], "second", frame(&frames[0], "first", NULL)));
	frames[0].is_entry = 1;
	if (!strcmp(mode, "ring")) {
		frames[0].is_entry = 0;
		frames[0].previous = &frames[1];
		state->next = state;
		interpreter.next = &interpreter;
	}
	if (garbage) {
		uint64_t x = (uint64_t)(state - states + seed) * UINT64_C(0x9e3779b97f4a7c15) + 1;
		fill_heap(garbage, &x);
		damage(frames, garbage, &x);
	}
	state->interp = &interpreter;
	state->cframe = &cframe;
	state->thread_id = pthread_self();
	__atomic_add_fetch(&interpreter.other[0], 1, __ATOMIC_SEQ_CST);
	while (!target_stop)
		target_sleep_us(1000);
}

static void *work(void *state)
{
	_PyEval_EvalFrameDefault(state, heap[(PyThreadState *)state - states]);
	return NULL;
}

int main(int argc, char **argv)
{
	mode = argc > 1 ? argv[1] : "healthy";
	seed = argc > 2 ? atol(argv[2]) : 0;
	const bool is_garbage = !strcmp(mode, "garbage");
	pthread_t thread;
	target_stop_on_term();
	_PyRuntime.interpreters.head = &interpreter;
	interpreter.threads.head = states;
	for (long i = 0; is_garbage && i < THREADS; i++) {
		states[i].next = i + 1 < THREADS ? &states[i + 1] : NULL;
		if (pthread_create(&thread, NULL, work, &states[i]))
			return 1;
	}
	while (is_garbage && __atomic_load_n(&interpreter.other[0], __ATOMIC_SEQ_CST) < THREADS)
		target_sleep_us(1000);
	target_ready();
	if (is_garbage)
		while (!target_stop)
			target_sleep_us(1000);
	else
		_PyEval_EvalFrameDefault(states, NULL);
	puts("RESULT OK");
	return 0;
}
