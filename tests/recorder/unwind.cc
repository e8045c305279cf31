// What unwinds the stack through the recorder: a crash handler's backtrace (as glog and abseil print it) and a cancelled thread.
#include <csignal>
#include <cstdio>
#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

extern "C" int cudnnCreate(void **), cudnnSetStream(void *, void *);

static void crashed(int) {
    void *frames[32];
    backtrace_symbols_fd(frames, backtrace(frames, 32), 1);
    _exit(0);
}
struct Guard {
    ~Guard() { std::puts("destructor ran"); }
};
static void *thread(void *) {
    Guard guard;
    cudnnSetStream(reinterpret_cast<void *>(1), nullptr); // STUB_DO lets it hang
    return nullptr;
}
extern "C" __attribute__((noinline)) int user_function() {
    void *handle = nullptr;
    return cudnnCreate(&handle) + 1; // STUB_DO lets it crash
}

int main(int argc, char **) {
    if (argc == 1) {
        std::signal(SIGSEGV, crashed);
        return user_function();
    }
    pthread_t id;
    pthread_create(&id, nullptr, thread, nullptr);
    usleep(200000);
    pthread_cancel(id);
    pthread_join(id, nullptr);
    std::puts("joined");
}
