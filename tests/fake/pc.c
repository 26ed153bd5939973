/* PC sampling that makes samples up: of each 1,000 of the kernel _Z3oddv 720 wait for memory, 80 drain, 120 issue and 80 let
 * others go first; of _Z4evenv there are 2 in each lot. Structures as in NVIDIA's cupti_pcsampling.h of CUDA 13.0. Part of libcupti.c.
 *
 * FAKE_PC_ENABLE    what cuptiPCSamplingEnable answers
 * FAKE_PC_DATA      what cuptiPCSamplingGetData answers from its fifth call on
 * FAKE_PC_DROPPED   samples that each lot says were dropped
 * FAKE_MODULE       a cubin with the line tables of _Z3oddv: where in it its samples are stands below
 */
typedef struct { uint32_t index, samples; } pc_reason_t;
typedef struct __attribute__((packed, aligned(8))) {
    size_t size; uint64_t crc, offset; uint32_t function, pad; const char *name; size_t count; pc_reason_t *reasons; uint32_t correlation;
} pc_place_t;
typedef struct __attribute__((packed, aligned(8))) {
    size_t size, room; uint64_t total, dropped; size_t count, remaining; uint64_t range; pc_place_t *places; uint64_t others; uint8_t full;
} pc_data_t;
typedef struct { int kind, status; union { struct { size_t count; uint32_t *indices; } reasons; int mode; void *data; size_t pad[3]; } value; } pc_set_t;
typedef struct { size_t size; void *priv, *context; } pc_of_t;
typedef struct { size_t size; void *priv, *context; size_t *count; } pc_count_t;
typedef struct { size_t size; void *priv, *context; size_t count; uint32_t *indices; char **names; } pc_names_t;
typedef struct { size_t size; void *priv, *context; size_t count; pc_set_t *all; } pc_config_t;
typedef struct { size_t size; void *priv, *context; pc_data_t *data; } pc_get_t;

static const char *pc_names[] = { "long_scoreboard", "long_scoreboard_not_issued", "drain", "selected", "not_selected" };
enum { PC_REASONS = 5, PC_FIRST = 40 };
static int pc_on, pc_set, pc_gets;
static uint64_t pc_module;

int cuptiPCSamplingEnable(pc_of_t *p) {
    if (p->size != 24 || !p->context || pc_on) return 1;
    int code = number("FAKE_PC_ENABLE", 0);
    pc_on = !code;
    if (pc_on) pc_module = fake_module();
    return code;
}
int cuptiPCSamplingDisable(pc_of_t *p) { if (p->size != 24 || !pc_on) return 1; pc_on = pc_set = 0; return 0; }
int cuptiPCSamplingGetNumStallReasons(pc_count_t *p) { if (p->size != 32 || !pc_on) return 1; *p->count = PC_REASONS; return 0; }
int cuptiPCSamplingGetStallReasons(pc_names_t *p) {
    if (p->size != 48 || p->count != PC_REASONS) return 1;
    for (int i = 0; i < PC_REASONS; i++) {
        p->indices[i] = PC_FIRST + i;
        snprintf(p->names[i], 128, "smsp__pcsamp_warps_issue_stalled_%s", pc_names[i]);
    }
    return 0;
}
int cuptiPCSamplingSetConfigurationAttribute(pc_config_t *p) {
    int continuous = 0, reasons = 0, data = 0;
    for (size_t i = 0; i < p->count; i++) switch (p->all[i].kind) {
        case 5: continuous = p->all[i].value.mode == 1; break;
        case 2: reasons = p->all[i].value.reasons.count == PC_REASONS && p->all[i].value.reasons.indices[4] == PC_FIRST + 4; break;
        case 8: data = ((pc_data_t *)p->all[i].value.data)->size == sizeof(pc_data_t); break;
        default: return 1;
    }
    if (p->size != 40 || !continuous || !reasons || !data) return 1;
    pc_set = 1;
    return 0;
}

static void pc_place(pc_data_t *d, const char *name, uint64_t offset, int reason, uint32_t samples) {
    pc_place_t *it = &d->places[d->count++];
    it->name = name;
    it->crc = pc_module;
    it->offset = offset;
    it->count = 1;
    it->reasons[0].index = PC_FIRST + reason;
    it->reasons[0].samples = samples;
}

/* A lot comes in two parts. */
int cuptiPCSamplingGetData(pc_get_t *p) {
    pc_data_t *d = p->data;
    if (p->size != 32 || !pc_set || d->room < 8 || d->places[0].size != sizeof(pc_place_t)) return 1;
    if (++pc_gets > 4 && number("FAKE_PC_DATA", 0)) return number("FAKE_PC_DATA", 0);
    d->count = 0;
    d->dropped = number("FAKE_PC_DROPPED", 0);
    d->remaining = pc_gets % 2;
    if (d->remaining) {
        pc_place(d, "_Z3oddv", 0x90, 0, 620);
        pc_place(d, "_Z3oddv", 0x60, 0, 100);
        pc_place(d, "_Z3oddv", 0x90, 1, 420);
        pc_place(d, "_Z4evenv", 0, 1, 2);
    } else {
        pc_place(d, "_Z3oddv", 0xf0, 2, 80);
        pc_place(d, "_Z3oddv", 0xe0, 3, 120);
        pc_place(d, "_Z3oddv", 0x1f0, 4, 80);
    }
    return 0;
}
