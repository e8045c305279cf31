/* A cuDNN client in C: what TensorFlow calls for a stream, in each state that this client can be in.
   client STATE; the library is $CUDNN, a path. Prints TensorFlow's line and aborts as its CHECK does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *P;
static int (*cuInit)(unsigned), (*retain)(P *, int), (*set_current)(P), (*create_context)(P *, unsigned, int);
static int (*pop)(P *), (*reset)(int), (*create_stream)(P *, unsigned);
static const char *(*name)(int);
static int (*create)(P *), (*destroy)(P), (*set_stream)(P, P), (*descriptor)(P *);

static P need(P library, const char *name)
{
	P found = dlsym(library, name);
	if (!found) { fprintf(stderr, "no %s: %s\n", name, dlerror()); exit(98); }
	return found;
}

static void check(int status)
{
	if (!status) return;
	fprintf(stderr, "F0000 00:00:00.000000 %d cuda_dnn.cc:1234] Check failed: status == CUDNN_STATUS_SUCCESS (%d vs. 0)"
		"Failed to set cuDNN stream.\n", getpid(), status);
	abort();
}

static P reset_device(P unused) { (void)unused; if (reset(0)) exit(97); return 0; }

int main(int argc, char **argv)
{
	const char *state = argc > 1 ? argv[1] : "healthy";
	P cuda = dlopen("libcuda.so.1", RTLD_NOW), cudnn = dlopen(getenv("CUDNN"), RTLD_NOW | RTLD_GLOBAL);
	if (!cuda || !cudnn) { fprintf(stderr, "%s\n", dlerror()); return 99; }
	cuInit = need(cuda, "cuInit"); retain = need(cuda, "cuDevicePrimaryCtxRetain");
	set_current = need(cuda, "cuCtxSetCurrent"); create_context = need(cuda, "cuCtxCreate_v2");
	pop = need(cuda, "cuCtxPopCurrent_v2"); reset = need(cuda, "cuDevicePrimaryCtxReset_v2");
	create_stream = need(cuda, "cuStreamCreate");
	create = need(cudnn, "cudnnCreate"); destroy = need(cudnn, "cudnnDestroy");
	set_stream = need(cudnn, "cudnnSetStream"); descriptor = need(cudnn, "cudnnCreateTensorDescriptor");
	name = need(cudnn, "cudnnGetErrorString");
	P primary = 0, other = 0, handle = 0, stream = 0, shape = 0;
	if (cuInit(0) || retain(&primary, 0) || set_current(primary)) return 96;
	int status = create(&handle);
	if (!status) status = descriptor(&shape);
	if (status) {
		fprintf(stderr, "E0000 00:00:00.000000 %d cuda_dnn.cc:502] Could not create cudnn handle: %s\n", getpid(), name(status));
		return 1;
	}
	if (create_stream(&stream, 1)) return 95;
	check(set_stream(handle, stream));
	if (!strcmp(state, "healthy")) { destroy(handle); puts("healthy"); return 0; }
	if (!strcmp(state, "other-context")) { if (create_context(&other, 0, 0) || create_stream(&stream, 1) || pop(&other)) return 94; }
	if (!strcmp(state, "destroyed")) check(destroy(handle));
	if (!strcmp(state, "reset")) {
		pthread_t thread;
		pthread_create(&thread, 0, reset_device, 0);
		pthread_join(thread, 0);
		if (retain(&primary, 0) || set_current(primary) || create_stream(&stream, 1)) return 93;
	}
	if (!strcmp(state, "fork")) {
		pid_t child = fork();
		if (child) { int how; waitpid(child, &how, 0); return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how); }
	}
	check(set_stream(handle, stream));
	puts("it was taken");
	return 0;
}
