// SPDX-License-Identifier: Apache-2.0
/* parse.c - reads PTX as nvcc writes it, and refuses by name whatever is not known. The first
 * problem is kept and ends the text, so the functions after it do nothing. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"
#include "phema/span.h"
#include "ptx.h"

#define MAX_WORD  256
#define MAX_NAMES 4096

/* Names of a kernel with their values: parameters, shared variables, labels. */
struct names {
    struct {
        char text[MAX_WORD];
        uint64_t value;
    } items[MAX_NAMES];
    size_t n;
};

/* Registers of one declaration: PREFIX0, PREFIX1, ... */
struct registers {
    char prefix[16];
    size_t first, n;
};

struct parser {
    const char *at;
    char word[MAX_WORD]; /* the last one that was read */
    uint32_t line;
    struct ptx_kernel kernel; /* being parsed */
    struct names variables, labels;
    struct registers sets[16];
    size_t n_sets;
    char (*targets)[MAX_WORD]; /* [n_code] labels of branches */
    enum phema_status status;
    struct phema_error *err;
};

static void refuse(struct parser *parser, const char *format, ...) PHEMA_PRINTF(2, 3);

static void refuse(struct parser *parser, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (!parser->status)
        parser->status =
            phema_fail(parser->err, PHEMA_ERR_INPUTS, "PTX, line %u: %s", parser->line, text);
    parser->at = "";
}

/* ---- Words ---- */

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

/* The next word, or a single other character; empty at the end. */
static const char *next_word(struct parser *parser)
{
    size_t n = 0;
    skip_space(parser);
    for (char c = *parser->at; c && (isalnum((unsigned char)c) || strchr("_$%.-", c));
         c = *++parser->at)
        if (n + 1 < MAX_WORD)
            parser->word[n++] = c;
    if (!n && *parser->at)
        parser->word[n++] = *parser->at++;
    parser->word[n] = 0;
    return parser->word;
}

static bool accept(struct parser *parser, char wanted)
{
    skip_space(parser);
    bool is_found = *parser->at == wanted;
    parser->at += is_found;
    return is_found;
}

static void expect(struct parser *parser, char wanted)
{
    if (!accept(parser, wanted))
        refuse(parser, "expected '%c', found '%.20s'", wanted, parser->at);
}

/* Are there more items before the one that ends a list? */
static bool has_more(struct parser *parser, char end)
{
    return !parser->status && !accept(parser, end);
}

static bool read_number(uint64_t *out, const char *word)
{
    char *end;
    bool is_float = word[0] == '0' && (word[1] == 'f' || word[1] == 'd');
    *out = is_float ? strtoull(word + 2, &end, 16) : strtoull(word, &end, 0);
    return (isdigit((unsigned char)word[0]) || word[0] == '-') && (*end == 0 || *end == 'U');
}

static uint64_t next_number(struct parser *parser)
{
    uint64_t number = 0;
    if (!read_number(&number, next_word(parser)))
        refuse(parser, "expected a number, found '%s'", parser->word);
    return number;
}

static void add_name(struct parser *parser, struct names *names, uint64_t value)
{
    if (names->n == MAX_NAMES) {
        refuse(parser, "more than %d names", MAX_NAMES);
        return;
    }
    memcpy(names->items[names->n].text, parser->word, MAX_WORD);
    names->items[names->n++].value = value;
}

static bool find(uint64_t *value, const struct names *names, const char *text)
{
    for (size_t i = 0; i < names->n; i++) {
        *value = names->items[i].value;
        if (strcmp(names->items[i].text, text) == 0)
            return true;
    }
    return false;
}

/* ---- Registers: special ones, then declared ones, then constants ---- */

static uint16_t constant(struct ptx_kernel *kernel, uint64_t value)
{
    size_t i = 0;
    while (i < kernel->n_constants && kernel->constants[i] != value)
        i++;
    if (i == kernel->n_constants) {
        if (i % 64 == 0)
            kernel->constants = realloc(kernel->constants, (i + 64) * sizeof(uint64_t));
        kernel->constants[kernel->n_constants++] = value;
    }
    return (uint16_t)(PTX_N_SPECIAL + kernel->n_declared + i);
}

/* The next word as a register: one, a number or the address of a variable. */
static uint16_t operand(struct parser *parser)
{
    static const char *const specials[PTX_N_SPECIAL] = {
        "%tid.x",   "%tid.y",   "%tid.z",   "%ntid.x",   "%ntid.y",   "%ntid.z",
        "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z"};
    const char *word = next_word(parser);
    uint64_t value;
    if (find(&value, &parser->variables, word) || read_number(&value, word))
        return constant(&parser->kernel, value);
    for (uint16_t i = 0; i < PTX_N_SPECIAL; i++)
        if (strcmp(word, specials[i]) == 0)
            return i;
    for (size_t i = 0; i < parser->n_sets; i++) {
        const struct registers *set = &parser->sets[i];
        size_t n = strlen(set->prefix);
        if (strncmp(word, set->prefix, n) == 0 && read_number(&value, word + n) && value < set->n)
            return (uint16_t)(PTX_N_SPECIAL + set->first + value);
    }
    refuse(parser, "unknown operand '%s'", word);
    return 0;
}

/* .reg .b32 %r<83>; */
static void declare_registers(struct parser *parser)
{
    struct registers set = {.first = parser->kernel.n_declared};
    (void)next_word(parser); /* the type, which each instruction repeats */
    (void)snprintf(set.prefix, sizeof(set.prefix), "%.15s", next_word(parser));
    expect(parser, '<');
    set.n = next_number(parser);
    expect(parser, '>');
    if (parser->kernel.n_code || parser->n_sets == ARRAY_LEN(parser->sets) || set.n > 30000) {
        refuse(parser, "registers %s: too many, or after the first instruction", set.prefix);
        return;
    }
    parser->sets[parser->n_sets++] = set;
    parser->kernel.n_declared += set.n;
}

/* [.align N] .TYPE NAME[COUNT], behind .param or .shared: its place in a space of *size bytes */
static uint64_t declare_variable(struct parser *parser, uint64_t *size, uint64_t *bytes)
{
    bool has_align = strcmp(next_word(parser), ".align") == 0;
    uint64_t align = has_align ? next_number(parser) : 0;
    const char *type = has_align ? next_word(parser) : parser->word;
    size_t bits = strtoul(type[0] ? type + 2 : "", NULL, 10); /* .u64, .b8 */
    if (bits % 8 || !bits || bits > 64)
        refuse(parser, "unknown type '%s'", type);
    if (strcmp(next_word(parser), ".ptr") == 0) { /* to what it points: .ptr .align 8 */
        if (strcmp(next_word(parser), ".align") != 0)
            refuse(parser, "unknown attribute '%s'", parser->word);
        (void)next_number(parser);
        (void)next_word(parser);
    }
    align = align ? align : parser->status ? 1 : bits / 8;
    uint64_t offset = (*size + align - 1) / align * align;
    add_name(parser, &parser->variables, offset);
    *bytes = bits / 8;
    if (accept(parser, '[')) {
        *bytes *= next_number(parser);
        expect(parser, ']');
    }
    *size = offset + *bytes;
    return offset;
}

/* ---- Instructions ---- */

/* R, or {R, R} */
static void parse_vector(uint16_t *out, size_t n, struct parser *parser)
{
    if (n > 1)
        expect(parser, '{');
    for (size_t i = 0; i < n; i++) {
        if (i)
            expect(parser, ',');
        out[i] = operand(parser);
    }
    if (n > 1)
        expect(parser, '}');
}

/* [R], [R+8], [R+-8] */
static void parse_address(struct ptx_instruction *instruction, struct parser *parser)
{
    expect(parser, '[');
    instruction->sources[0] = operand(parser);
    if (accept(parser, '+'))
        instruction->offset = (int64_t)next_number(parser);
    expect(parser, ']');
}

/* ld.SPACE[.v2|.v4].TYPE, st.SPACE[.v2|.v4].TYPE; false where it is none of them */
static bool describe_access(struct ptx_instruction *out, const char *mnemonic)
{
    static const char *const spaces[] = {".param.", ".shared.", ".global."};
    static const char types[][4] = {"u8",  "b8",  "u16", "b16", "u32",
                                    "b32", "f32", "u64", "b64", "f64"};
    const char *at = mnemonic + 2;
    if (strncmp(mnemonic, "ld.", 3) != 0 && strncmp(mnemonic, "st.", 3) != 0)
        return false;
    out->kind = mnemonic[0] == 'l' ? PTX_LOAD : PTX_STORE;
    size_t space = 0, type = 0;
    while (space < ARRAY_LEN(spaces) && strncmp(at, spaces[space], strlen(spaces[space])) != 0)
        space++;
    if (space == ARRAY_LEN(spaces) || (space == PTX_PARAM && out->kind == PTX_STORE))
        return false;
    at += strlen(spaces[space]);
    out->space = (enum ptx_space)space;
    out->n_elements = strncmp(at, "v2.", 3) == 0 ? 2 : strncmp(at, "v4.", 3) == 0 ? 4 : 1;
    at += out->n_elements > 1 ? 3 : 0;
    while (type < ARRAY_LEN(types) && strcmp(at, types[type]) != 0)
        type++;
    if (type == ARRAY_LEN(types))
        return false;
    out->bytes = (uint8_t)(strtoul(types[type] + 1, NULL, 10) / 8);
    out->n_sources = 1;
    return true;
}

static void parse_operands(struct ptx_instruction *instruction, struct parser *parser)
{
    const char *word = parser->word;
    if (strcmp(word, "bra") == 0 || strcmp(word, "bra.uni") == 0) {
        instruction->kind = PTX_BRANCH;
        memcpy(parser->targets[parser->kernel.n_code], next_word(parser), MAX_WORD);
    } else if (strcmp(word, "bar.sync") == 0 || strcmp(word, "barrier.sync") == 0) {
        instruction->kind = PTX_BARRIER;
        if (next_number(parser))
            refuse(parser, "only barrier 0 is known");
    } else if (strcmp(word, "ret") == 0 || strcmp(word, "exit") == 0) {
        instruction->kind = PTX_END;
    } else if (strcmp(word, "atom.shared.add.u32") == 0) {
        *instruction = (struct ptx_instruction){
            .kind = PTX_ATOM_ADD, .space = PTX_SHARED, .bytes = 4, .n_elements = 1, .n_sources = 2};
        parse_vector(instruction->d, 1, parser);
        expect(parser, ',');
        parse_address(instruction, parser);
        expect(parser, ',');
        parse_vector(&instruction->sources[1], 1, parser);
    } else if (describe_access(instruction, word)) {
        bool is_load = instruction->kind == PTX_LOAD;
        if (is_load)
            parse_vector(instruction->d, instruction->n_elements, parser);
        else
            parse_address(instruction, parser);
        expect(parser, ',');
        if (is_load)
            parse_address(instruction, parser);
        else
            parse_vector(instruction->d, instruction->n_elements, parser);
    } else {
        *instruction = (struct ptx_instruction){.kind = PTX_COMPUTE, .n_elements = 1};
        instruction->compute = ptx_compute_named(word, &instruction->n_sources);
        if (!instruction->compute) {
            refuse(parser, "unknown instruction '%s'", word);
            return;
        }
        parse_vector(instruction->d, 1, parser);
        for (size_t i = 0; i < instruction->n_sources; i++) {
            expect(parser, ',');
            parse_vector(&instruction->sources[i], 1, parser);
        }
    }
}

static void parse_instruction(struct parser *parser)
{
    struct ptx_kernel *kernel = &parser->kernel;
    struct ptx_instruction instruction = {0};
    uint16_t guard = PTX_NO_REGISTER;
    bool is_negated = false;
    if (kernel->n_code % 256 == 0) {
        size_t n = kernel->n_code + 256;
        kernel->code = realloc(kernel->code, n * sizeof(*kernel->code));
        parser->targets = realloc(parser->targets, n * MAX_WORD);
    }
    uint32_t line = parser->line;
    if (parser->word[0] == '@') {
        is_negated = accept(parser, '!');
        guard = operand(parser);
        (void)next_word(parser);
    }
    parse_operands(&instruction, parser);
    expect(parser, ';');
    instruction.guard = guard;
    instruction.guard_is_negated = is_negated;
    instruction.line = line;
    kernel->code[kernel->n_code++] = instruction;
}

static void parse_statement(struct parser *parser)
{
    struct ptx_kernel *kernel = &parser->kernel;
    const char *word = next_word(parser);
    uint64_t bytes;
    if (word[0] == '$') {
        add_name(parser, &parser->labels, kernel->n_code);
        expect(parser, ':');
    } else if (strcmp(word, ".reg") == 0) {
        declare_registers(parser);
        expect(parser, ';');
    } else if (strcmp(word, ".shared") == 0) {
        (void)declare_variable(parser, &kernel->shared_bytes, &bytes);
        expect(parser, ';');
    } else if (strcmp(word, ".pragma") == 0) {
        parser->at += strcspn(parser->at, ";\n");
        expect(parser, ';');
    } else {
        parse_instruction(parser);
    }
}

static void resolve_branches(struct parser *parser)
{
    const struct ptx_kernel *kernel = &parser->kernel;
    for (size_t i = 0; i < kernel->n_code && !parser->status; i++) {
        uint64_t target = 0;
        if (kernel->code[i].kind != PTX_BRANCH)
            continue;
        parser->line = kernel->code[i].line;
        if (!find(&target, &parser->labels, parser->targets[i]) || target >= kernel->n_code)
            refuse(parser, "unknown label '%s'", parser->targets[i]);
        kernel->code[i].target = (uint32_t)target;
    }
    const struct ptx_instruction *last = kernel->n_code ? &kernel->code[kernel->n_code - 1] : NULL;
    bool is_branch = last && last->kind == PTX_BRANCH && last->guard == PTX_NO_REGISTER;
    if (!last || (last->kind != PTX_END && !is_branch))
        refuse(parser, "%s does not end with ret or bra", kernel->name);
}

static void parse_kernel(struct parser *parser)
{
    struct ptx_kernel *kernel = &parser->kernel;
    *kernel = (struct ptx_kernel){.name = strdup(next_word(parser))};
    parser->variables.n = parser->labels.n = parser->n_sets = 0;
    expect(parser, '(');
    while (has_more(parser, ')')) {
        size_t i = kernel->n_params;
        if (strcmp(next_word(parser), ".param") != 0 || i == PTX_MAX_PARAMS) {
            refuse(parser, "expected at most %d parameters, found '%s'", PTX_MAX_PARAMS,
                   parser->word);
            return;
        }
        kernel->param_offsets[i] =
            declare_variable(parser, &kernel->params_size, &kernel->param_bytes[i]);
        kernel->n_params++;
        (void)accept(parser, ',');
    }
    while (has_more(parser, '{')) {
        if (strcmp(next_word(parser), ".minnctapersm") == 0) {
            (void)next_number(parser);
            continue;
        }
        if (strcmp(parser->word, ".maxntid") != 0)
            refuse(parser, "unknown directive '%s'", parser->word);
        kernel->max_threads = 1;
        do
            kernel->max_threads *= (uint32_t)next_number(parser);
        while (accept(parser, ','));
    }
    while (has_more(parser, '}'))
        parse_statement(parser);
    resolve_branches(parser);
    kernel->n_registers = PTX_N_SPECIAL + kernel->n_declared + kernel->n_constants;
    if (kernel->n_registers >= PTX_NO_REGISTER)
        refuse(parser, "%s has too many registers and constants", kernel->name);
}

static void parse(struct ptx_module *module, struct parser *parser)
{
    while (next_word(parser)[0]) {
        const char *word = parser->word;
        if (strcmp(word, ".version") == 0 || strcmp(word, ".target") == 0 ||
            strcmp(word, ".address_size") == 0) {
            parser->at += strcspn(parser->at, "\n");
        } else if (strcmp(word, ".entry") == 0) {
            parse_kernel(parser);
            size_t n = module->n_kernels + 1;
            module->kernels = realloc(module->kernels, n * sizeof(*module->kernels));
            module->kernels[module->n_kernels++] = parser->kernel;
        } else if (strcmp(word, ".visible") != 0 && strcmp(word, ".weak") != 0) {
            refuse(parser, "unknown directive '%s'", word);
        }
    }
}

enum phema_status ptx_module_parse(struct ptx_module **out, const char *text,
                                   struct phema_error *err)
{
    struct ptx_module *module = calloc(1, sizeof(*module));
    struct parser *parser = calloc(1, sizeof(*parser));
    enum phema_status status = PHEMA_OK;
    if (module && parser) {
        parser->at = text;
        parser->line = 1;
        parser->err = err;
        parse(module, parser);
        free(parser->targets);
        status = parser->status;
    } else {
        status = phema_fail_memory(err);
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
