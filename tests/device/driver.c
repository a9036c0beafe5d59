/* A libcuda that has no GPU: it keeps the driver's rules and says where they are broken, and has kernels run by whoever
   registers for it (tests/device/test_cuda_driver.py runs them on emulated threads).

   With -DHAVE_CUDA_H the prototypes are checked against NVIDIA's header by the compiler. The rules:

   - nothing works before cuInit, in a forked child, or (but for what says so) without a current context;
   - addresses and sizes of copies lie in memory that was allocated and not freed, and so do pointers of the host's;
   - nobody but a launch or a copy touches a device's memory: it is protected in between;
   - work of the default stream is done one after the other, and as late as it may be: when somebody waits for it, or
     asks, or (`fake_slow`) in another thread;
   - a launch fits: blocks of at most 1024 threads, as many meeting blocks as run at a time, no null argument;
   - options of the assembler are numbers and buffers in an array of pointers.

   What breaks one of them returns the driver's error for it, and is counted with a text in `fake_complaints`. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef HAVE_CUDA_H
#include <cuda.h>
#else
typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute, CUmemPool_attribute, CUjit_option, CUjitInputType;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUlinkState_st *CUlinkState;
#endif

enum { OK = 0, INVALID_VALUE = 1, NO_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
       INVALID_CONTEXT = 201, INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL = 700,
       LAUNCH_TOO_LARGE = 720 };
enum { DEVICES = 2, BLOCKS_AT_A_TIME = 8, BLOCK_LIMIT = 1024, MOST_COMPLAINTS = 32 };
#define MEMORY ((size_t)1 << 26)
#define PAGE ((size_t)4096)

struct CUctx_st { int device, retained; };
struct CUmod_st { int live; char *text; };
struct CUfunc_st { struct CUmod_st *module; char name[128]; };
struct CUstream_st { unsigned flags; };
struct CUmemPoolHandle_st { int device; };
struct CUlinkState_st { int live; char *text, *log; size_t log_size; };

typedef int (*launcher)(const char *name, const char *text, unsigned blocks, unsigned threads, void **parameters);
typedef struct block { CUdeviceptr address; size_t size, room; int pooled, host, given_back; struct block *next; } block;
/* What the default stream is to do: a launch; a copy, where there is no function; where there is no target, nothing but
   giving back `memory`. */
typedef struct work {
  CUfunction function; unsigned blocks, threads; void *copies[256];
  void *target; const void *source; size_t size;
  block *memory;
  struct work *next;
} work;

static work *first, *last;
static int unfinished; /* how much of it there is */
static __thread int working;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, stream_lock = PTHREAD_MUTEX_INITIALIZER;
static int initialised, lost;
static pid_t process;
static struct CUctx_st contexts[DEVICES] = {{0, 0}, {1, 0}};
static struct CUmemPoolHandle_st pools[DEVICES] = {{0}, {1}};
static block *blocks;
static size_t taken;
static __thread CUcontext stack[16];
static __thread int depth;
static launcher launch_by;

char fake_complaints[MOST_COMPLAINTS][256];
int fake_complaint_count, fake_no_pools, fake_old, fake_slow, fake_fail_next_launch, fake_live_modules, fake_assembled;
int fake_cooperative_launches, fake_launches, fake_no_device, fake_peer_copies;
int fake_idle; /* launches do nothing */

void fake_run_kernels_by(launcher function) { launch_by = function; }
size_t fake_taken(void) { return taken; }
int fake_context_depth(void) { return depth; }
int fake_blocks_in_use(void) {
  int count = 0;
  for (block *each = blocks; each; each = each->next) count += !each->host && !each->given_back;
  return count;
}

static CUresult complain(int status, const char *function, const char *what) {
  pthread_mutex_lock(&lock);
  if (fake_complaint_count < MOST_COMPLAINTS)
    snprintf(fake_complaints[fake_complaint_count++], 256, "%s: %s", function, what);
  pthread_mutex_unlock(&lock);
  return (CUresult)status;
}

#define REFUSE(status, what) return complain(status, __func__, what)
#define BEGIN                                                                              \
  do {                                                                                     \
    if (!initialised || getpid() != process) REFUSE(NOT_INITIALIZED, "before cuInit, or in a forked child"); \
    if (lost) return (CUresult)ILLEGAL;                                                              \
  } while (0)
#define IN_CONTEXT                                                      \
  do {                                                                  \
    BEGIN;                                                              \
    if (!depth) REFUSE(INVALID_CONTEXT, "the thread has no context");   \
  } while (0)

static block *holding(CUdeviceptr address, size_t size) {
  for (block *each = blocks; each; each = each->next)
    if (!each->given_back && each->address <= address && address + size <= each->address + each->size) return each;
  return NULL;
}

static void protect(int how) {
  for (block *each = blocks; each; each = each->next)
    if (!each->host) mprotect((void *)each->address, each->room, how);
}

static void forget(block *memory) {
  for (block **each = &blocks; *each; each = &(*each)->next)
    if (*each == memory) {
      *each = memory->next;
      break;
    }
  munmap((void *)memory->address, memory->room);
  free(memory);
}

/* Does the stream's next piece of work. */
static int result;
static void step(void) {
  pthread_mutex_lock(&lock);
  work *now = first;
  if (now) {
    first = now->next;
    if (!first) last = NULL;
    if (!now->memory) protect(PROT_READ | PROT_WRITE);
  }
  pthread_mutex_unlock(&lock);
  if (!now) return;
  if (now->function) {
    if (launch_by)
      result |= launch_by(now->function->name, now->function->module->text, now->blocks, now->threads, now->copies);
    for (int i = 0; i < 256; i++) free(now->copies[i]);
  } else if (now->target) memmove(now->target, now->source, now->size);
  pthread_mutex_lock(&lock);
  if (now->memory) forget(now->memory);
  else protect(PROT_NONE);
  unfinished--;
  pthread_mutex_unlock(&lock);
  free(now);
}

static void steps(int most) {
  if (working) return; /* by a kernel's own thread */
  pthread_mutex_lock(&stream_lock);
  working = 1;
  while (most-- && __atomic_load_n(&unfinished, __ATOMIC_ACQUIRE)) step();
  working = 0;
  pthread_mutex_unlock(&stream_lock);
}

static void *in_thread(void *unused) {
  (void)unused;
  steps(-1);
  return NULL;
}

/* Takes a piece of work; the lock is held. */
static void take(work described) {
  work *made = malloc(sizeof *made);
  *made = described;
  made->next = NULL;
  if (last) last->next = made;
  else first = made;
  last = made;
  unfinished++;
}

static void begin(void) {
  pthread_t thread;
  if (fake_slow && !pthread_create(&thread, NULL, in_thread, NULL)) pthread_detach(thread);
}

static CUresult waited(void) {
  if (lost) return (CUresult)ILLEGAL;
  steps(-1);
  return (CUresult)(result ? INVALID_VALUE : OK);
}

/* --- errors ----------------------------------------------------------------------------------------------------- */

static const struct { int status; const char *name, *text; } MEANINGS[] = {
  {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
  {NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
  {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
  {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
  {INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
  {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
  {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
  {ILLEGAL, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
  {LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
};

static CUresult meaning(int status, const char **found, int name) {
  for (size_t i = 0; i < sizeof MEANINGS / sizeof *MEANINGS; i++)
    if (MEANINGS[i].status == status) {
      *found = name ? MEANINGS[i].name : MEANINGS[i].text;
      return (CUresult)OK;
    }
  *found = NULL;
  return (CUresult)INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **text) { return meaning(error, text, 1); }
CUresult cuGetErrorString(CUresult error, const char **text) { return meaning(error, text, 0); }

/* --- devices and contexts --------------------------------------------------------------------------------------- */

CUresult cuInit(unsigned flags) {
  if (flags) REFUSE(INVALID_VALUE, "flags");
  if (fake_no_device) return (CUresult)100;
  initialised = 1;
  process = getpid();
  return (CUresult)OK;
}

CUresult cuDriverGetVersion(int *version) {
  *version = 12080;
  return (CUresult)OK;
}

CUresult cuDeviceGetCount(int *count) {
  BEGIN;
  *count = DEVICES;
  return (CUresult)OK;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  BEGIN;
  if (ordinal < 0 || ordinal >= DEVICES) REFUSE(INVALID_DEVICE, "ordinal");
  *device = ordinal;
  return (CUresult)OK;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  BEGIN;
  if (size < 1 || device < 0 || device >= DEVICES) REFUSE(INVALID_VALUE, "size or device");
  snprintf(name, (size_t)size, "Pretended GPU %d", device);
  return (CUresult)OK;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
  BEGIN;
  if (device < 0 || device >= DEVICES) REFUSE(INVALID_DEVICE, "device");
  switch ((int)which) {
    case 75: *value = fake_old ? 6 : 9; break;
    case 76: *value = 0; break;
    case 16: *value = 4; break;
    case 95: *value = 1; break;
    case 115: *value = !fake_no_pools; break;
    default: REFUSE(INVALID_VALUE, "an attribute that nobody should ask for");
  }
  return (CUresult)OK;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  BEGIN;
  if (device < 0 || device >= DEVICES) REFUSE(INVALID_DEVICE, "device");
  contexts[device].retained++;
  *context = &contexts[device];
  return (CUresult)OK;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  BEGIN;
  if (!context || context < contexts || context >= contexts + DEVICES || !context->retained)
    REFUSE(INVALID_CONTEXT, "no retained context");
  if (depth == 16) REFUSE(INVALID_VALUE, "contexts are pushed and never popped");
  stack[depth++] = context;
  return (CUresult)OK;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  if (!depth) REFUSE(INVALID_CONTEXT, "the thread has no context");
  *context = stack[--depth];
  return (CUresult)OK;
}

/* --- memory ----------------------------------------------------------------------------------------------------- */

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  IN_CONTEXT;
  *total = MEMORY;
  *free = MEMORY - taken;
  return (CUresult)OK;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
  BEGIN;
  if (fake_no_pools || device < 0 || device >= DEVICES) REFUSE(INVALID_DEVICE, "there are no pools");
  *pool = &pools[device];
  return (CUresult)OK;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value) {
  BEGIN;
  if (pool < pools || pool >= pools + DEVICES) REFUSE(INVALID_VALUE, "no pool");
  if ((int)which != 4 || *(uint64_t *)value != UINT64_MAX) REFUSE(INVALID_VALUE, "not the release threshold");
  return (CUresult)OK;
}

static CUresult taking(const char *function, CUdeviceptr *address, size_t size, int pooled, int host) {
  if (!size) return complain(INVALID_VALUE, function, "no bytes");
  size_t room = (size + PAGE - 1) / PAGE * PAGE;
  pthread_mutex_lock(&lock);
  if (!host && taken + size > MEMORY) {
    pthread_mutex_unlock(&lock);
    return (CUresult)NO_MEMORY;
  }
  block *made = malloc(sizeof *made);
  void *found = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(found, 0xCB, room);
  if (!host) mprotect(found, room, PROT_NONE);
  *made = (block){(CUdeviceptr)found, size, room, pooled, host, 0, blocks};
  blocks = made;
  if (!host) taken += size;
  *address = made->address;
  pthread_mutex_unlock(&lock);
  return (CUresult)OK;
}

static CUresult giving_back(const char *function, CUdeviceptr address, int pooled) {
  const char *wrong = NULL;
  pthread_mutex_lock(&lock);
  block *found = blocks;
  while (found && (found->address != address || found->host || found->given_back)) found = found->next;
  if (!found) wrong = "memory that isn't in use";
  else if (found->pooled != pooled) wrong = "memory of another kind";
  else if (!pooled && unfinished) wrong = "memory that a kernel may still use";
  else {
    taken -= found->size;
    found->given_back = 1;
    if (pooled) take((work){.memory = found}); /* when all that was asked before is done */
    else forget(found);
  }
  pthread_mutex_unlock(&lock);
  return wrong ? complain(INVALID_VALUE, function, wrong) : (CUresult)OK;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream) {
  IN_CONTEXT;
  if (fake_no_pools) REFUSE(INVALID_VALUE, "there are no pools");
  if (stream) REFUSE(INVALID_VALUE, "another stream than the default one");
  return taking(__func__, address, size, 1, 0);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  IN_CONTEXT;
  if (stream) REFUSE(INVALID_VALUE, "another stream than the default one");
  return giving_back(__func__, address, 1);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
  IN_CONTEXT;
  return taking(__func__, address, size, 0, 0);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  IN_CONTEXT;
  return giving_back(__func__, address, 0);
}

CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned flags) {
  IN_CONTEXT;
  if (flags != 3) REFUSE(INVALID_VALUE, "neither portable nor mapped");
  CUdeviceptr address;
  CUresult status = taking(__func__, &address, size, 0, 1);
  *pointer = (void *)address;
  return status;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *pointer, unsigned flags) {
  IN_CONTEXT;
  block *found = holding((CUdeviceptr)pointer, 1);
  if (flags || !found || !found->host) REFUSE(INVALID_VALUE, "no mapped memory");
  *address = (CUdeviceptr)pointer;
  return (CUresult)OK;
}

enum { AT_ONCE, WAITED_FOR, LATER };

static CUresult moving(const char *function, CUdeviceptr target, CUdeviceptr source, size_t size, int to, int from,
                       int when) {
  if (!size) return complain(INVALID_VALUE, function, "no bytes");
  pthread_mutex_lock(&lock);
  block *one = to ? holding(target, size) : NULL, *other = from ? holding(source, size) : NULL;
  const char *wrong = to && (!one || one->host) ? "a target that isn't the GPU's"
                      : from && (!other || other->host) ? "a source that isn't the GPU's"
                      : !to && !target ? "no target" : !from && !source ? "no source" : NULL;
  if (!wrong && when == AT_ONCE) {
    protect(PROT_READ | PROT_WRITE);
    memmove((void *)target, (void *)source, size);
    if (!unfinished) protect(PROT_NONE);
  } else if (!wrong) take((work){.target = (void *)target, .source = (void *)source, .size = size});
  pthread_mutex_unlock(&lock);
  if (wrong) return complain(INVALID_VALUE, function, wrong);
  if (when == WAITED_FOR) return waited();
  if (when == LATER) begin();
  return (CUresult)OK;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t size) {
  IN_CONTEXT;
  return moving(__func__, target, (CUdeviceptr)source, size, 1, 0, WAITED_FOR);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t size, CUstream stream) {
  IN_CONTEXT;
  block *found = holding((CUdeviceptr)source, size);
  if (!found || !found->host) REFUSE(INVALID_VALUE, "memory that isn't pinned: the copy would be waited for");
  if (stream && (stream->flags != 1 || size != 8)) REFUSE(INVALID_VALUE, "not the word that ends a launch");
  return moving(__func__, target, (CUdeviceptr)source, size, 1, 0, stream ? AT_ONCE : LATER);
}

CUresult cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t size) {
  IN_CONTEXT;
  return moving(__func__, (CUdeviceptr)target, source, size, 0, 1, WAITED_FOR);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, size_t size) {
  IN_CONTEXT;
  return moving(__func__, target, source, size, 1, 1, LATER);
}

CUresult cuMemcpyPeer(CUdeviceptr target, CUcontext there, CUdeviceptr source, CUcontext here, size_t size) {
  IN_CONTEXT;
  if (!there || !here || !there->retained || !here->retained) REFUSE(INVALID_CONTEXT, "no context of a device");
  fake_peer_copies++;
  return moving(__func__, target, source, size, 1, 1, LATER);
}

/* --- code ------------------------------------------------------------------------------------------------------- */

/* The machine code that the assembler makes is the PTX behind this. */
static const char MAGIC[] = "\x7f" "ELF for the pretended GPU\n";

CUresult cuLinkCreate_v2(unsigned count, CUjit_option *options, void **values, CUlinkState *state) {
  IN_CONTEXT;
  struct CUlinkState_st *made = calloc(1, sizeof *made);
  for (unsigned i = 0; i < count; i++) {
    if ((int)options[i] == 5) made->log = values[i];
    else if ((int)options[i] == 6) made->log_size = (size_t)(unsigned)(uintptr_t)values[i];
    else REFUSE(INVALID_VALUE, "an unknown option");
  }
  if (!made->log || made->log_size < 64) REFUSE(INVALID_VALUE, "no buffer for errors");
  made->live = 1;
  *state = made;
  return (CUresult)OK;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                          unsigned count, CUjit_option *options, void **values) {
  IN_CONTEXT;
  if (!state || !state->live || count || options || values || !name) REFUSE(INVALID_HANDLE, "state or options");
  if ((int)type != 1) REFUSE(INVALID_VALUE, "no PTX");
  const char *text = data;
  if (!size || text[size - 1]) REFUSE(INVALID_VALUE, "PTX without a zero at its end");
  if (!strstr(text, ".version") || !strstr(text, ".entry") || strstr(text, "syntax error")) {
    snprintf(state->log, state->log_size, "ptxas application ptx input, line 1; fatal: Parsing error");
    return (CUresult)INVALID_PTX;
  }
  state->text = strdup(text);
  return (CUresult)OK;
}

CUresult cuLinkComplete(CUlinkState state, void **code, size_t *size) {
  IN_CONTEXT;
  if (!state || !state->live || !state->text) REFUSE(INVALID_HANDLE, "nothing was added");
  fake_assembled++;
  *size = sizeof MAGIC - 1 + strlen(state->text);
  char *made = malloc(*size + 1);
  memcpy(made, MAGIC, sizeof MAGIC - 1);
  strcpy(made + sizeof MAGIC - 1, state->text);
  free(state->text);
  state->text = made;
  *code = made;
  return (CUresult)OK;
}

CUresult cuLinkDestroy(CUlinkState state) {
  IN_CONTEXT;
  if (!state || !state->live) REFUSE(INVALID_HANDLE, "no state");
  state->live = 0;
  if (state->text) memset(state->text, 0, strlen(state->text)); /* the code is gone with it */
  return (CUresult)OK;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  IN_CONTEXT;
  if (memcmp(image, MAGIC, sizeof MAGIC - 1)) return (CUresult)INVALID_IMAGE;
  struct CUmod_st *made = calloc(1, sizeof *made);
  made->live = 1;
  const char *text = (const char *)image + sizeof MAGIC - 1;
  made->text = strdup(text);
  fake_live_modules++;
  *module = made;
  return (CUresult)OK;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  IN_CONTEXT;
  char wanted[160];
  snprintf(wanted, sizeof wanted, ".entry %s(", name);
  if (!module || !module->live) REFUSE(INVALID_HANDLE, "no module");
  if (!strstr(module->text, wanted)) REFUSE(NOT_FOUND, "no such entry");
  struct CUfunc_st *made = calloc(1, sizeof *made);
  made->module = module;
  snprintf(made->name, sizeof made->name, "%s", name);
  *function = made;
  return (CUresult)OK;
}

CUresult cuModuleUnload(CUmodule module) {
  IN_CONTEXT;
  if (!module || !module->live) REFUSE(INVALID_HANDLE, "no module");
  pthread_mutex_lock(&lock);
  int used = 0;
  for (work *each = first; each; each = each->next) used |= each->function && each->function->module == module;
  pthread_mutex_unlock(&lock);
  if (used) REFUSE(INVALID_VALUE, "a module of which a kernel is still to run");
  module->live = 0;
  fake_live_modules--;
  return (CUresult)OK;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function) {
  IN_CONTEXT;
  if ((int)which || !function || !function->module->live) REFUSE(INVALID_VALUE, "attribute or function");
  *value = 768;
  return (CUresult)OK;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction function, int size, size_t shared) {
  IN_CONTEXT;
  if (!function || !function->module->live || size != 256 || shared) REFUSE(INVALID_VALUE, "function, size or memory");
  *count = BLOCKS_AT_A_TIME / 4;
  return (CUresult)OK;
}

/* --- launches --------------------------------------------------------------------------------------------------- */

static CUresult launching(const char *name, CUfunction function, const unsigned *sizes, unsigned shared,
                          CUstream stream, void **parameters, int together) {
  if (!function || !function->module->live) return complain(INVALID_HANDLE, name, "no function");
  if (!parameters) return complain(INVALID_VALUE, name, "no arguments");
  if (shared || stream) return complain(INVALID_VALUE, name, "shared memory, or another stream");
  for (int i = 0; i < 6; i++)
    if (!sizes[i]) return complain(INVALID_VALUE, name, "a grid or block without threads");
  if (sizes[3] > BLOCK_LIMIT || sizes[4] != 1 || sizes[5] != 1) return complain(INVALID_VALUE, name, "the block's size");
  if (together && sizes[0] > BLOCKS_AT_A_TIME) return complain(LAUNCH_TOO_LARGE, name, "more blocks than run at a time");
  fake_launches++;
  fake_cooperative_launches += together;
  if (fake_idle) return (CUresult)OK;
  if (fake_fail_next_launch) {
    fake_fail_next_launch = 0;
    lost = 1;
    return (CUresult)OK; /* that is said later */
  }
  /* As the driver does, the arguments are read now, as long as PTX says that they are. */
  work now = {.function = function, .blocks = sizes[0], .threads = sizes[3]};
  const char *at = strstr(function->module->text, ".entry");
  const char *end = strchr(at, ')');
  int count = 0;
  while ((at = strstr(at, ".param .")) && at < end && count < 256) {
    at += strlen(".param .");
    size_t size = (size_t)atoi(at + 1) / 8;
    if (!parameters[count]) return complain(INVALID_VALUE, name, "an argument that is null");
    now.copies[count] = calloc(1, 8);
    memcpy(now.copies[count], parameters[count], size);
    count++;
  }
  pthread_mutex_lock(&lock);
  take(now);
  pthread_mutex_unlock(&lock);
  begin();
  return (CUresult)OK;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,
                        void **extra) {
  IN_CONTEXT;
  if (extra) REFUSE(INVALID_VALUE, "arguments in two ways");
  unsigned sizes[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
  return launching(__func__, function, sizes, shared, stream, parameters, 0);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                   CUstream stream, void **parameters) {
  IN_CONTEXT;
  unsigned sizes[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
  return launching(__func__, function, sizes, shared, stream, parameters, 1);
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  IN_CONTEXT;
  *stream = calloc(1, sizeof **stream);
  (*stream)->flags = flags;
  return (CUresult)OK;
}

CUresult cuStreamQuery(CUstream stream) {
  IN_CONTEXT;
  if (stream) REFUSE(INVALID_VALUE, "another stream than the default one");
  if (!fake_slow) steps(1);
  if (__atomic_load_n(&unfinished, __ATOMIC_ACQUIRE)) return (CUresult)NOT_READY;
  return waited();
}

CUresult cuStreamSynchronize(CUstream stream) {
  IN_CONTEXT;
  if (stream) REFUSE(INVALID_VALUE, "another stream than the default one");
  return waited();
}
