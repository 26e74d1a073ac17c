// SPDX-License-Identifier: Apache-2.0
/* parse.c - reads PTX as nvcc writes it. Whatever is not known is refused by name. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"
#include "phema/span.h"
#include "ptx.h"

#define MAX_WORD     256
#define MAX_OPERANDS 8
#define MAX_SYMBOLS  64
#define MAX_LABELS   4096

/* A shared variable, a parameter or a label, and its offset or instruction. */
struct symbol {
    char name[MAX_WORD];
    uint64_t value;
};

/* Registers of one declaration: PREFIX0, PREFIX1, ... */
struct registers {
    char prefix[16];
    size_t first, n;
};

struct parser {
    const char *at;
    uint32_t line;
    struct ptx_kernel kernel; /* being parsed */
    size_t n_symbols, n_labels, n_declared, n_sets;
    struct symbol symbols[MAX_SYMBOLS], labels[MAX_LABELS];
    struct registers sets[16];
    char (*targets)[MAX_WORD]; /* [n_code] labels of branches */
    struct phema_error *err;
};

static enum phema_status refuse(const struct parser *parser, const char *format, ...)
    PHEMA_PRINTF(2, 3);

static enum phema_status refuse(const struct parser *parser, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return phema_fail(parser->err, PHEMA_ERR_INPUTS, "PTX, line %u: %s", parser->line, text);
}

static void skip_space(struct parser *parser)
{
    for (; *parser->at; parser->at++) {
        if (strncmp(parser->at, "//", 2) == 0)
            parser->at += strcspn(parser->at, "\n");
        if (!isspace((unsigned char)*parser->at))
            return;
        parser->line += *parser->at == '\n';
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || strchr("_$%.-", c);
}

/* The next word, or a single other character; empty at the end. */
static void next_token(struct parser *parser, char out[MAX_WORD])
{
    skip_space(parser);
    size_t n = 0;
    while (*parser->at && is_word(*parser->at) && n + 1 < MAX_WORD)
        out[n++] = *parser->at++;
    if (!n && *parser->at)
        out[n++] = *parser->at++;
    out[n] = 0;
}

static bool accept(struct parser *parser, char wanted)
{
    skip_space(parser);
    if (*parser->at != wanted)
        return false;
    parser->at++;
    return true;
}

static PHEMA_FALLIBLE expect(struct parser *parser, char wanted)
{
    if (accept(parser, wanted))
        return PHEMA_OK;
    return refuse(parser, "expected '%c', found '%.20s'", wanted, parser->at);
}

static bool read_number(uint64_t *out, const char *word)
{
    char *end;
    bool is_float = word[0] == '0' && (word[1] == 'f' || word[1] == 'd');
    *out = is_float ? strtoull(word + 2, &end, 16) : strtoull(word, &end, 0);
    return (isdigit((unsigned char)word[0]) || word[0] == '-') && (*end == 0 || *end == 'U');
}

static PHEMA_FALLIBLE next_number(uint64_t *out, struct parser *parser)
{
    char word[MAX_WORD];
    next_token(parser, word);
    return read_number(out, word) ? PHEMA_OK
                                  : refuse(parser, "expected a number, found '%s'", word);
}

static const struct symbol *find(const struct symbol *symbols, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(symbols[i].name, name) == 0)
            return &symbols[i];
    return NULL;
}

static PHEMA_FALLIBLE add_symbol(struct parser *parser, struct symbol *symbols, size_t *n,
                                 size_t max, const char *name, uint64_t value)
{
    if (*n == max)
        return refuse(parser, "more than %zu names", max);
    (void)snprintf(symbols[*n].name, MAX_WORD, "%s", name);
    symbols[(*n)++].value = value;
    return PHEMA_OK;
}

/* ---- Registers: special ones, then the declared ones, then constants; reordered at the end ---- */

static uint16_t constant(struct parser *parser, uint64_t value)
{
    struct ptx_kernel *kernel = &parser->kernel;
    size_t i = 0;
    while (i < kernel->n_constants && kernel->constants[i] != value)
        i++;
    if (i == kernel->n_constants) {
        if (i % 64 == 0)
            kernel->constants = realloc(kernel->constants, (i + 64) * sizeof(uint64_t));
        kernel->constants[kernel->n_constants++] = value;
    }
    return (uint16_t)(PTX_N_SPECIAL + parser->n_declared + i);
}

static bool special(uint16_t *out, const char *word)
{
    static const char *const names[] = {"%tid", "%ntid", "%ctaid", "%nctaid"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        if (strncmp(word, names[i], n) == 0 && word[n] == '.' && word[n + 1] >= 'x' &&
            word[n + 1] <= 'z' && !word[n + 2]) {
            *out = (uint16_t)(3 * i + (size_t)(word[n + 1] - 'x'));
            return true;
        }
    }
    return false;
}

static PHEMA_FALLIBLE operand(uint16_t *out, struct parser *parser, const char *word)
{
    uint64_t value;
    const struct symbol *symbol = find(parser->symbols, parser->n_symbols, word);
    if (symbol) {
        *out = constant(parser, symbol->value);
        return PHEMA_OK;
    }
    if (read_number(&value, word)) {
        *out = constant(parser, value);
        return PHEMA_OK;
    }
    if (special(out, word))
        return PHEMA_OK;
    for (size_t i = 0; i < parser->n_sets; i++) {
        const struct registers *set = &parser->sets[i];
        size_t n = strlen(set->prefix);
        if (strncmp(word, set->prefix, n) == 0 && read_number(&value, word + n) && value < set->n) {
            *out = (uint16_t)(PTX_N_SPECIAL + set->first + value);
            return PHEMA_OK;
        }
    }
    return refuse(parser, "unknown operand '%s'", word);
}

/* .reg .b32 %r<83>; */
static PHEMA_FALLIBLE declare_registers(struct parser *parser)
{
    char type[MAX_WORD], prefix[MAX_WORD];
    uint64_t n;
    next_token(parser, type);
    next_token(parser, prefix);
    if (parser->kernel.n_code || parser->n_sets == ARRAY_LEN(parser->sets) ||
        strlen(prefix) >= sizeof(parser->sets[0].prefix))
        return refuse(parser, "registers %s: too many, or after the first instruction", prefix);
    enum phema_status status = expect(parser, '<');
    if (!status)
        status = next_number(&n, parser);
    if (!status)
        status = expect(parser, '>');
    if (status)
        return status;
    struct registers *set = &parser->sets[parser->n_sets++];
    *set = (struct registers){.first = parser->n_declared, .n = n};
    memcpy(set->prefix, prefix, strlen(prefix) + 1);
    parser->n_declared += n;
    return parser->n_declared < 32768 ? expect(parser, ';') : refuse(parser, "too many registers");
}

/* ---- Variables ---- */

/* [.align N] .TYPE NAME[BYTES], behind .param or .shared: its place in a space of *size bytes */
static PHEMA_FALLIBLE declare_variable(uint64_t *offset, uint64_t *bytes, uint64_t *size,
                                       struct parser *parser)
{
    char word[MAX_WORD];
    uint64_t align = 0, pointee_align, count = 1;
    enum phema_status status = PHEMA_OK;
    next_token(parser, word);
    if (strcmp(word, ".align") == 0) {
        status = next_number(&align, parser);
        next_token(parser, word);
    }
    size_t bits = strtoul(word[0] ? word + 2 : "", NULL, 10); /* .u64, .b8 */
    if (status || bits % 8 || !bits || bits > 64)
        return status ? status : refuse(parser, "unknown type '%s'", word);
    next_token(parser, word);
    if (strcmp(word, ".ptr") == 0) { /* of what it points to: .ptr .align 8 */
        next_token(parser, word);
        status = strcmp(word, ".align") == 0 ? next_number(&pointee_align, parser)
                                             : refuse(parser, "unknown attribute '%s'", word);
        next_token(parser, word);
    }
    if (!status && accept(parser, '[')) {
        status = next_number(&count, parser);
        if (!status)
            status = expect(parser, ']');
    }
    if (status)
        return status;
    align = align ? align : bits / 8;
    *offset = (*size + align - 1) / align * align;
    *bytes = count * bits / 8;
    *size = *offset + *bytes;
    return add_symbol(parser, parser->symbols, &parser->n_symbols, MAX_SYMBOLS, word, *offset);
}

static PHEMA_FALLIBLE parse_params(struct parser *parser)
{
    struct ptx_kernel *kernel = &parser->kernel;
    char word[MAX_WORD];
    enum phema_status status = expect(parser, '(');
    while (!status && !accept(parser, ')')) {
        next_token(parser, word);
        if (strcmp(word, ".param") != 0 || kernel->n_params == PTX_MAX_PARAMS)
            return refuse(parser, "expected at most %d parameters, found '%s'", PTX_MAX_PARAMS,
                          word);
        size_t i = kernel->n_params++;
        status = declare_variable(&kernel->param_offsets[i], &kernel->param_bytes[i],
                                  &kernel->params_size, parser);
        (void)accept(parser, ',');
    }
    return status;
}

/* ---- Instructions ---- */

/* R, or {R, R} */
static PHEMA_FALLIBLE parse_vector(uint16_t *out, size_t n, struct parser *parser)
{
    char word[MAX_WORD];
    enum phema_status status = n > 1 ? expect(parser, '{') : PHEMA_OK;
    for (size_t i = 0; i < n && !status; i++) {
        next_token(parser, word);
        status = operand(&out[i], parser, word);
        if (!status && i + 1 < n)
            status = expect(parser, ',');
    }
    return status || n == 1 ? status : expect(parser, '}');
}

/* [R], [R+8], [R+-8] */
static PHEMA_FALLIBLE parse_address(struct ptx_instruction *instruction, struct parser *parser)
{
    char word[MAX_WORD];
    uint64_t offset = 0;
    enum phema_status status = expect(parser, '[');
    if (status)
        return status;
    next_token(parser, word);
    status = operand(&instruction->sources[0], parser, word);
    if (!status && accept(parser, '+'))
        status = next_number(&offset, parser);
    instruction->offset = (int64_t)offset;
    return status ? status : expect(parser, ']');
}

/* ld.SPACE[.v2].TYPE, st.SPACE.TYPE and atom.shared.add.u32; false where it is none of them */
static bool describe_access(struct ptx_instruction *instruction, const char *mnemonic)
{
    static const char *const spaces[] = {".param.", ".shared.", ".global."};
    static const struct {
        const char *name;
        uint8_t bytes;
    } types[] = {{"u8", 1},  {"b8", 1},  {"u16", 2}, {"b16", 2}, {"u32", 4},
                 {"b32", 4}, {"f32", 4}, {"u64", 8}, {"b64", 8}, {"f64", 8}};
    const char *at = mnemonic;
    if (strcmp(mnemonic, "atom.shared.add.u32") == 0) {
        *instruction = (struct ptx_instruction){
            .kind = PTX_ATOM_ADD, .space = PTX_SHARED, .bytes = 4, .n_elements = 1};
        return true;
    }
    if (strncmp(at, "ld.", 3) != 0 && strncmp(at, "st.", 3) != 0)
        return false;
    instruction->kind = at[0] == 'l' ? PTX_LOAD : PTX_STORE;
    at += 2;
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        size_t n = strlen(spaces[i]);
        if (strncmp(at, spaces[i], n) != 0)
            continue;
        instruction->space = (enum ptx_space)i;
        at += n;
        instruction->n_elements = strncmp(at, "v2.", 3) == 0   ? 2
                                  : strncmp(at, "v4.", 3) == 0 ? 4
                                                               : 1;
        at += instruction->n_elements > 1 ? 3 : 0;
        for (size_t j = 0; j < ARRAY_LEN(types); j++)
            if (strcmp(at, types[j].name) == 0) {
                instruction->bytes = types[j].bytes;
                return !(i == PTX_PARAM && instruction->kind == PTX_STORE);
            }
    }
    return false;
}

static PHEMA_FALLIBLE parse_access(struct ptx_instruction *instruction, struct parser *parser)
{
    enum phema_status status = PHEMA_OK;
    if (instruction->kind != PTX_STORE) {
        status = parse_vector(instruction->d, instruction->n_elements, parser);
        if (!status)
            status = expect(parser, ',');
    }
    if (!status)
        status = parse_address(instruction, parser);
    if (instruction->kind == PTX_LOAD || status)
        return status;
    status = expect(parser, ',');
    if (status)
        return status;
    return instruction->kind == PTX_STORE
               ? parse_vector(instruction->d, instruction->n_elements, parser)
               : parse_vector(&instruction->sources[1], 1, parser);
}

static PHEMA_FALLIBLE parse_compute(struct ptx_instruction *instruction, struct parser *parser,
                                    const char *mnemonic)
{
    size_t n_sources = 0;
    instruction->kind = PTX_COMPUTE;
    instruction->compute = ptx_compute_named(mnemonic, &n_sources);
    if (!instruction->compute)
        return refuse(parser, "unknown instruction '%s'", mnemonic);
    enum phema_status status = parse_vector(instruction->d, 1, parser);
    for (size_t i = 0; i < n_sources && !status; i++) {
        status = expect(parser, ',');
        if (!status)
            status = parse_vector(&instruction->sources[i], 1, parser);
    }
    for (size_t i = n_sources; i < 3; i++)
        instruction->sources[i] = instruction->d[0]; /* read by none */
    return status;
}

static PHEMA_FALLIBLE parse_instruction(struct parser *parser, char *word)
{
    struct ptx_kernel *kernel = &parser->kernel;
    struct ptx_instruction instruction = {.guard = PTX_NO_REGISTER, .line = parser->line};
    enum phema_status status = PHEMA_OK;
    if (strcmp(word, "@") == 0) {
        instruction.guard_is_negated = accept(parser, '!');
        next_token(parser, word);
        status = operand(&instruction.guard, parser, word);
        next_token(parser, word);
    }
    struct ptx_instruction access = {0};
    if (kernel->n_code % 256 == 0) {
        size_t n = kernel->n_code + 256;
        kernel->code = realloc(kernel->code, n * sizeof(*kernel->code));
        parser->targets = realloc(parser->targets, n * MAX_WORD);
    }
    parser->targets[kernel->n_code][0] = 0;
    if (status)
        return status;
    if (strcmp(word, "bra") == 0 || strcmp(word, "bra.uni") == 0) {
        instruction.kind = PTX_BRANCH;
        next_token(parser, parser->targets[kernel->n_code]);
    } else if (strcmp(word, "bar.sync") == 0 || strcmp(word, "barrier.sync") == 0) {
        uint64_t number;
        instruction.kind = PTX_BARRIER;
        status = next_number(&number, parser);
        if (!status && number)
            status = refuse(parser, "only barrier 0 is known");
    } else if (strcmp(word, "ret") == 0 || strcmp(word, "exit") == 0) {
        instruction.kind = PTX_END;
    } else if (describe_access(&access, word)) {
        access.guard = instruction.guard;
        access.guard_is_negated = instruction.guard_is_negated;
        access.line = instruction.line;
        instruction = access;
        status = parse_access(&instruction, parser);
    } else {
        status = parse_compute(&instruction, parser, word);
    }
    kernel->code[kernel->n_code++] = instruction;
    return status ? status : expect(parser, ';');
}

static PHEMA_FALLIBLE parse_statement(struct parser *parser, char *word)
{
    struct ptx_kernel *kernel = &parser->kernel;
    if (strcmp(word, ".reg") == 0)
        return declare_registers(parser);
    if (strcmp(word, ".shared") == 0) {
        uint64_t offset, bytes;
        enum phema_status status = declare_variable(&offset, &bytes, &kernel->shared_bytes, parser);
        return status ? status : expect(parser, ';');
    }
    if (strcmp(word, ".pragma") == 0) {
        parser->at += strcspn(parser->at, ";\n");
        return expect(parser, ';');
    }
    if (word[0] == '$') {
        enum phema_status status =
            add_symbol(parser, parser->labels, &parser->n_labels, MAX_LABELS, word, kernel->n_code);
        return status ? status : expect(parser, ':');
    }
    return parse_instruction(parser, word);
}

/* Constants go before declared registers, so that they are set in one piece. */
static uint16_t place(const struct parser *parser, uint16_t index)
{
    size_t n_constants = parser->kernel.n_constants, n_declared = parser->n_declared;
    if (index < PTX_N_SPECIAL || index == PTX_NO_REGISTER)
        return index;
    size_t i = index - (size_t)PTX_N_SPECIAL;
    return (uint16_t)(PTX_N_SPECIAL + (i < n_declared ? n_constants + i : i - n_declared));
}

static PHEMA_FALLIBLE resolve(struct parser *parser)
{
    struct ptx_kernel *kernel = &parser->kernel;
    for (size_t i = 0; i < kernel->n_code; i++) {
        struct ptx_instruction *instruction = &kernel->code[i];
        instruction->guard = place(parser, instruction->guard);
        for (size_t j = 0; j < ARRAY_LEN(instruction->d); j++)
            instruction->d[j] = place(parser, instruction->d[j]);
        for (size_t j = 0; j < ARRAY_LEN(instruction->sources); j++)
            instruction->sources[j] = place(parser, instruction->sources[j]);
        if (instruction->kind != PTX_BRANCH)
            continue;
        const struct symbol *label = find(parser->labels, parser->n_labels, parser->targets[i]);
        if (!label || label->value >= kernel->n_code) {
            parser->line = instruction->line;
            return refuse(parser, "unknown label '%s'", parser->targets[i]);
        }
        instruction->target = (uint32_t)label->value;
    }
    kernel->n_registers = PTX_N_SPECIAL + kernel->n_constants + parser->n_declared;
    if (kernel->n_registers >= PTX_NO_REGISTER)
        return refuse(parser, "%s has too many registers and constants", kernel->name);
    const struct ptx_instruction *last = kernel->n_code ? &kernel->code[kernel->n_code - 1] : NULL;
    bool is_branch = last && last->kind == PTX_BRANCH && last->guard == PTX_NO_REGISTER;
    if (!last || (last->kind != PTX_END && !is_branch))
        return refuse(parser, "%s does not end with ret or bra", kernel->name);
    return PHEMA_OK;
}

static PHEMA_FALLIBLE parse_kernel(struct parser *parser)
{
    struct ptx_kernel *kernel = &parser->kernel;
    char word[MAX_WORD];
    uint64_t number;
    parser->n_symbols = parser->n_labels = parser->n_declared = parser->n_sets = 0;
    next_token(parser, word);
    kernel->name = strdup(word);
    enum phema_status status = parse_params(parser);
    while (!status && !accept(parser, '{')) {
        next_token(parser, word);
        if (strcmp(word, ".maxntid") != 0)
            return refuse(parser, "unknown directive '%s'", word);
        kernel->max_threads = 1;
        do {
            status = next_number(&number, parser);
            kernel->max_threads *= (uint32_t)number;
        } while (!status && accept(parser, ','));
    }
    while (!status && !accept(parser, '}')) {
        next_token(parser, word);
        status = parse_statement(parser, word);
    }
    return status ? status : resolve(parser);
}

static PHEMA_FALLIBLE parse(struct ptx_module *module, struct parser *parser)
{
    static const char *const ignored[] = {".version", ".target", ".address_size"};
    char word[MAX_WORD];
    enum phema_status status = PHEMA_OK;
    for (next_token(parser, word); word[0] && !status; next_token(parser, word)) {
        bool is_ignored = false;
        for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
            is_ignored = is_ignored || strcmp(word, ignored[i]) == 0;
        if (is_ignored) {
            parser->at += strcspn(parser->at, "\n");
        } else if (strcmp(word, ".entry") == 0) {
            parser->kernel = (struct ptx_kernel){0};
            status = parse_kernel(parser);
            size_t n = module->n_kernels + 1;
            module->kernels = realloc(module->kernels, n * sizeof(*module->kernels));
            module->kernels[module->n_kernels++] = parser->kernel;
        } else if (strcmp(word, ".visible") != 0 && strcmp(word, ".weak") != 0) {
            status = refuse(parser, "unknown directive '%s'", word);
        }
    }
    return status;
}

enum phema_status ptx_module_parse(struct ptx_module **out, const char *text,
                                   struct phema_error *err)
{
    struct ptx_module *module = calloc(1, sizeof(*module));
    struct parser *parser = calloc(1, sizeof(*parser));
    enum phema_status status = module && parser ? PHEMA_OK : phema_fail_memory(err);
    if (!status) {
        *parser = (struct parser){.at = text, .line = 1, .err = err};
        status = parse(module, parser);
        free(parser->targets);
    }
    free(parser);
    if (status)
        ptx_module_free(module);
    else
        *out = module;
    return status;
}

void ptx_module_free(struct ptx_module *module)
{
    for (size_t i = 0; module && i < module->n_kernels; i++) {
        free(module->kernels[i].name);
        free(module->kernels[i].code);
        free(module->kernels[i].constants);
    }
    if (module)
        free(module->kernels);
    free(module);
}
