// SPDX-License-Identifier: Apache-2.0
/* Hostile pickles that attack the stack, the memo, the memory, the recursion, and the next reader.
 * Opcodes are bytes with the names of CPython's pickletools. */
#include "phema/formats.h"

#include "build.h"

#define PROTO            "\x80\x02"
#define TEXT(size, text) "X" size "\0\0\0" text
/* Storage '0' of 8 bytes and a tensor of all of them; INT is BININT1. */
#define PID(class, key, numel)                                                                     \
    "(" TEXT("\7", "storage") class TEXT("\1", key) TEXT("\3", "cpu") numel "tQ"
#define BYTES   "ctorch\nByteStorage\n"
#define INT(n)  "K" n
#define REBUILD "ctorch._utils\n_rebuild_tensor_v2\n"
#define TENSOR(first, sizes, strides)                                                              \
    REBUILD "(" PID(BYTES, "0", INT("\x08")) first sizes strides "\x89NtR"
#define ALL TENSOR(INT("\0"), INT("\x08") "\x85", INT("\1") "\x85")

static enum phema_status open_pickle(struct phema_checkpoint **out, const void *pickle, size_t size,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err)
{
    struct phema_strbuf file = {0};
    put_torch(&file, pickle, size, 8);
    const char *path = as_file(file.data, file.size);
    phema_strbuf_clear(&file);
    *out = NULL;
    return phema_checkpoint_open(out, path, options, err);
}

static void refuse_pickle(const void *pickle, size_t size, const char *part)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_fails(open_pickle(&checkpoint, pickle, size, NULL, &err), PHEMA_ERR_FILE, &err, part);
    assert_null(checkpoint);
}

static struct phema_checkpoint *accept_pickle(const void *pickle, size_t size)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_pickle(&checkpoint, pickle, size, NULL, &err), &err);
    assert_places_inside(checkpoint);
    return checkpoint;
}

/* From string literals, which may contain NULs. */
#define REFUSE(pickle, part) refuse_pickle(pickle, sizeof(pickle) - 1, part)
#define ACCEPT(pickle)       accept_pickle(pickle, sizeof(pickle) - 1)

static void check_names(struct phema_checkpoint *checkpoint, const char *wanted)
{
    struct phema_strbuf names = {0};
    put_text(&names, "");
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        put_text(&names, i ? " " : "");
        put(&names, tensor->name, tensor->name_size);
    }
    assert_string_equal(names.data, wanted);
    phema_strbuf_clear(&names);
    phema_checkpoint_close(checkpoint);
}

static void names_are_the_path_from_the_root(void **state)
{
    (void)state;
    check_names(ACCEPT(PROTO ALL "."), "tensor");
    check_names(ACCEPT(PROTO "]" ALL "a" ALL "a."), "0 1");
    check_names(ACCEPT(PROTO "}" TEXT("\1", "a") "]" ALL "as" INT("\5") ALL "s."), "a.0 5");
    check_names(ACCEPT(PROTO "}J\xFF\xFF\xFF\xFF" ALL "s."), "-1");
    /* parts may be empty */
    check_names(ACCEPT(PROTO "}" TEXT("\0", "") ALL "s."), "");
    check_names(ACCEPT(PROTO "}" TEXT("\0", "") "]" ALL "as."), ".0");
    /* a shared container is listed under each of its names */
    check_names(ACCEPT(PROTO "]" ALL "aq\0"
                             "0]h\0ah\0a"
                             "q\1"
                             "h\1"
                             "\x86."),
                "0.0.0 0.1.0 1.0.0 1.1.0");
    /* OrderedDict and similar types are dicts, made of pairs or filled later; their state is
     * ignored */
    check_names(ACCEPT(PROTO "ccollections\nOrderedDict\n]" TEXT("\1", "k") ALL "\x86"
                                                                                "a\x85R}b."),
                "k");
    check_names(ACCEPT(PROTO "ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R" TEXT("\1", "k")
                           ALL "s."),
                "k");
    check_names(ACCEPT(PROTO "ccollections\nOrderedDict\n)R" TEXT("\1", "k") ALL "s."), "k");
    /* nothing to list is not an error; inert objects hide their contents */
    check_names(ACCEPT(PROTO "}."), "");
    check_names(ACCEPT(PROTO "cargparse\nNamespace\n)\x81}" TEXT("\1", "k") ALL "sb."), "");
}

static void keys_without_a_name_are_left_out_with_a_warning(void **state)
{
    (void)state;
    struct phema_checkpoint *checkpoint = ACCEPT(PROTO "}"
                                                       "\x88" ALL "s"
                                                       "N" INT("\1") "s.");
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 0);
    assert_int_equal(phema_checkpoint_n_warnings(checkpoint), 1);
    assert_non_null(strstr(phema_checkpoint_warning(checkpoint, 0), "1 values"));
    phema_checkpoint_close(checkpoint);
}

static void two_tensors_of_one_name_are_refused(void **state)
{
    (void)state;
    /* {'a.b': t, 'a': {'b': t}} */
    REFUSE(PROTO "}" TEXT("\3", "a.b") ALL "s" TEXT("\1", "a") "}" TEXT("\1", "b") ALL "ss.",
           "tensor 'a.b': two tensors have this name");
    REFUSE(PROTO "}" INT("\1") ALL "s" TEXT("\1", "1") ALL "s.", "tensor '1'");
}

/* CPython 3.11 gives the expected keys and tensors for the same pickles. */
static void equal_keys_are_one_with_the_last_value(void **state)
{
    (void)state;
#define ONE    INT("\1")
#define ONE_F  "G\x3F\xF0\0\0\0\0\0\0"
#define LONG_1 "\x8A\x09\1\0\0\0\0\0\0\0\0"
#define ZERO_F "G\x80\0\0\0\0\0\0\0" /* -0.0 */
#define TWO_63 "G\x43\xE0\0\0\0\0\0\0"
#define MIN_64 "\x8A\x08\0\0\0\0\0\0\0\x80" /* -2^63 */
#define MIN_F  "G\xC3\xE0\0\0\0\0\0\0"
#define HALF   "G\x3F\xE0\0\0\0\0\0\0"
    check_names(ACCEPT(PROTO "}" TEXT("\1", "k") ALL "s" TEXT("\1", "k") "Ns."), "");
    check_names(
        ACCEPT(PROTO "}" TEXT("\1", "k") "Ns" TEXT("\1", "j") ALL "s" TEXT("\1", "k") ALL "s."),
        "k j"); /* at the place of the first one */
    check_names(ACCEPT(PROTO "}(" ONE ALL "\x88" ALL ONE_F ALL "u."), "1");
    check_names(ACCEPT(PROTO "}(" ONE "N" LONG_1 ALL "u."), "1");
    check_names(ACCEPT(PROTO "(" INT("\0") "N\x89" ALL "d."), "0");
    check_names(ACCEPT(PROTO "}(" INT("\0") "N" ZERO_F ALL "u."), "0");
    check_names(ACCEPT(PROTO "}(" MIN_64 "N" MIN_F ALL "u."), "-9223372036854775808");
    check_names(ACCEPT(PROTO "}(" ONE ALL "\x88N" ONE_F "Nu."), "");
    check_names(ACCEPT(PROTO "ccollections\nOrderedDict\n](" ONE ALL "\x86\x88N\x86" ONE ALL
                             "\x86" TEXT("\1", "1") "N\x86"
                                                    "e\x85R."),
                "1");
    check_names(ACCEPT(PROTO "ccollections\nOrderedDict\n}" ONE ALL "s\x85R\x88" ALL "s."), "1");
    /* text, bytes and numbers are never equal, and neither are these numbers */
    check_names(ACCEPT(PROTO "}(" TEXT("\1", "k") ALL "C\1kN" INT("\2") ALL HALF "N" MIN_64
                                                                                 "N" TWO_63 "Nu."),
                "k 2");
    /* NaN does not even equal itself */
#define NAN_F "G\x7F\xF8\0\0\0\0\0\0"
    struct phema_checkpoint *checkpoint =
        ACCEPT(PROTO "}(" NAN_F ALL NAN_F ALL "\x88" ALL ONE ALL "NNN" ALL "u.");
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 0);
    /* True is the key of one, None that of another */
    assert_non_null(strstr(phema_checkpoint_warning(checkpoint, 0), "4 values"));
    phema_checkpoint_close(checkpoint);
}

static void keys_are_hashable(void **state)
{
    (void)state;
    static const char part[] = "as a key of a dict or an item of a set";
#define SET    "c__builtin__\nset\n"
#define FROZEN "c__builtin__\nfrozenset\n"
    REFUSE(PROTO "}]Ns.", part);
    REFUSE(PROTO "}}Ns.", part);
    REFUSE(PROTO "}(NN]Nu.", part);
    REFUSE(PROTO "(]Nd.", part);
    REFUSE(PROTO "}\x8FNs.", part);
    REFUSE(PROTO "}" SET ")RNs.", part);
    REFUSE(PROTO "}\x96\1\0\0\0\0\0\0\0kNs.", part);
    REFUSE(PROTO "}c__builtin__\nbytearray\n)RNs.", part);
    REFUSE(PROTO "}c__builtin__\nlist\n)RNs.", part);
    REFUSE(PROTO "}ccollections\nOrderedDict\n)RNs.", part);
    REFUSE(PROTO "}N]\x85\x86Ns.", part); /* inside tuples */
    REFUSE(PROTO "}(NNN]tNs.", part);
    REFUSE(PROTO "ccollections\nOrderedDict\n]]N\x86"
                 "a\x85R.",
           part);
    REFUSE(PROTO "\x8F(]\x90.", part);
    REFUSE(PROTO "(]\x91.", part);
    REFUSE(PROTO SET "]]a\x85R.", part);
    check_names(ACCEPT(PROTO "}(NN\x88NK\1NC\1kNNN\x86N(N\x91N" FROZEN ")RN" FROZEN "]Na\x85RNu."),
                "");
    check_names(ACCEPT(PROTO "}" ALL "Ns."), ""); /* tensors are hashable, by identity */
    check_names(ACCEPT(PROTO "\x8F(NN\x86(N\x91\x90."), "");
}

/* Names and order are those of torch 1.13 for a state_dict with such attributes. */
static void tensors_in_attributes_of_dicts_are_listed(void **state)
{
    (void)state;
#define ORDERED "ccollections\nOrderedDict\n)R"
    struct phema_checkpoint *checkpoint =
        ACCEPT(PROTO "}" TEXT("\1", "s") ORDERED TEXT("\1", "k") ALL "s}(" TEXT("\5", "table")
                   ALL TEXT("\x09", "_metadata") "}" TEXT("\7", "version")
                       INT("\1") "sub"
                                 "s" TEXT("\1", "t") ALL "s.");
    assert_int_equal(phema_checkpoint_tensors(checkpoint)[0].kind, PHEMA_KIND_UNKNOWN);
    assert_int_equal(phema_checkpoint_tensors(checkpoint)[2].kind, PHEMA_KIND_ATTRIBUTE);
    check_names(checkpoint, "s.k t s.table");
    /* a pair of __dict__ and __slots__ */
    check_names(ACCEPT(PROTO ORDERED "}" TEXT("\1", "a") ALL "s}" TEXT("\1", "b") ALL "s\x86"
                                                                                      "b."),
                "a b");
    check_names(ACCEPT(PROTO ORDERED "N}" TEXT("\1", "b") ALL "s\x86"
                                                              "b."),
                "b");
    /* a dict whose attributes are its own items, or a list that contains the dict */
    check_names(ACCEPT(PROTO ORDERED "q\0" TEXT("\1", "k") ALL "sh\0b."), "k");
    check_names(ACCEPT(PROTO ORDERED "q\0}" TEXT("\1", "l") "]h\0a" ALL "asb."), "l.1");
    check_names(ACCEPT(PROTO ORDERED ALL "b."), ""); /* any other state */
    REFUSE(PROTO ORDERED "}b}b.", "builds a dict twice");
    REFUSE(PROTO ORDERED TEXT("\1", "k") ALL "s}" TEXT("\1", "k") ALL "sb.",
           "tensor 'k': two tensors have this name");
    checkpoint = ACCEPT(PROTO ORDERED "}" HALF "]" ALL "asb.");
    assert_non_null(strstr(phema_checkpoint_warning(checkpoint, 0), "1 values"));
    phema_checkpoint_close(checkpoint);
}

static void the_stack_is_guarded(void **state)
{
    (void)state;
    REFUSE(PROTO ".", "ends with 0 objects");
    REFUSE(PROTO "NN.", "ends with 2 objects");
    REFUSE(PROTO "N(.", "1 marks");
    REFUSE(PROTO "N", "cut short");
    REFUSE(PROTO, "cut short");
    REFUSE(PROTO "0.", "more from the stack");
    REFUSE(PROTO "2.", "more from the stack");
    REFUSE(PROTO "\x85.", "more from the stack");
    REFUSE(PROTO "N\x86.", "more from the stack");
    REFUSE(PROTO "N(\x85.", "more from the stack"); /* below the mark */
    REFUSE(PROTO "N(a.", "more from the stack");
    REFUSE(PROTO "](a.", "more from the stack");
    REFUSE(PROTO "t.", "found none");
    REFUSE(PROTO "1.", "found none");
    REFUSE(PROTO "NNa.", "expected a list");
    REFUSE(PROTO "N(Ne.", "expected a list");
    REFUSE(PROTO ")Na.", "expected a list"); /* a tuple never changes */
    REFUSE(PROTO "]NNs.", "expected a dict");
    REFUSE(PROTO "](NNu.", "expected a dict");
    REFUSE(PROTO "}(Nu.", "key without a value");
    REFUSE(PROTO "(Nd.", "key without a value");
    REFUSE(PROTO "](N\x90.", "expected a set");
    REFUSE(PROTO "NR.", "more from the stack");
    REFUSE(PROTO "N)R.", "calls an object that is not a global");
    REFUSE(PROTO "ccollections\nOrderedDict\nNR.", "no tuple");
    REFUSE(PROTO "Nb.", "more from the stack");
    REFUSE(PROTO "N}b.", "sets the state of a value that is not an object");
    REFUSE(PROTO "ccollections\nOrderedDict\n}b.",
           "sets the state of a value that is not an object");
    REFUSE(PROTO "NQ.", "persistent id");
    check_names(ACCEPT(PROTO "N(0(N1"
                             "20."),
                ""); /* POP removes marks, as in CPython */
}

static void the_memo_is_guarded(void **state)
{
    (void)state;
    REFUSE(PROTO "h\0.", "gets memo entry 0 of 0");
    REFUSE(PROTO "j\xFF\xFF\xFF\xFF.", "gets memo entry");
    REFUSE(PROTO "q\0.", "more from the stack");
    REFUSE(PROTO "Nq\1.", "puts memo entry 1 after 0");
    REFUSE(PROTO "Nr\xFF\xFF\xFF\x7F.", "puts memo entry 2147483647");
    check_names(ACCEPT(PROTO "Nq\0"
                             "q\0"
                             "\x94h\1\x86."),
                "");
}

static void lengths_end_inside_the_pickle(void **state)
{
    (void)state;
    REFUSE(PROTO "X\xFF\xFF\xFF\xFF"
                 "abc.",
           "cut short");
    REFUSE(PROTO "\x8D\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
                 "abc.",
           "cut short");
    REFUSE(PROTO "\x8E\xF0\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
                 "abc.",
           "cut short");
    REFUSE(PROTO "\x96\0\0\0\0\0\0\0\x80"
                 "abc.",
           "cut short");
    REFUSE(PROTO "\x8B\xFF\xFF\xFF\xFF.", "cut short");
    REFUSE(PROTO "\x8A\x09"
                 "1234.",
           "cut short");
    REFUSE(PROTO "G1234.", "cut short");
    REFUSE(PROTO "K", "cut short");
    REFUSE(PROTO "ctorch", "cut short");
    REFUSE(PROTO "ctorch\nSize", "cut short");
    REFUSE(PROTO "\x95\xFF\0\0\0\0\0\0\0N.", "frame");
    REFUSE(PROTO "X\2\0\0\0\xC3\x28.", "UTF-8");
    REFUSE(PROTO "X\3\0\0\0\xED\xA0\x80.", "UTF-8");
    check_names(ACCEPT(PROTO "\x95\2\0\0\0\0\0\0\0N."), "");
    check_names(ACCEPT(PROTO "\x8A\0\x8A\1\xFF\x8A\x09"
                             "123456789\x87."),
                "");
}

static void protocols_and_opcodes_outside_the_list_are_refused(void **state)
{
    (void)state;
    REFUSE("\x80\x01N.", "protocol 1");
    REFUSE("\x80\x06N.", "protocol 6");
    REFUSE("(dp0\n.", "protocol");
    REFUSE(PROTO PROTO "N.", "protocol twice");
    static const uint8_t opcodes[] = {'P',  'i',  'o',  'I',  'L',  'F',  'S',
                                      'V',  'p',  'g',  0x92, 0x82, 0x83, 0x84,
                                      0x97, 0x98, 0x99, 0xFF, 0x00, '\n', 'A'};
    for (size_t i = 0; i < sizeof(opcodes); i++) {
        const uint8_t pickle[] = {0x80, 2, opcodes[i], '0', '\n', '.'};
        refuse_pickle(pickle, sizeof(pickle), "is not accepted");
    }
}

static void names_that_run_code_are_refused_even_when_dropped(void **state)
{
    (void)state;
    REFUSE(PROTO "cos\nsystem\n" TEXT("\2", "ls") "\x85R.", "'os.system'");
    REFUSE(PROTO "cos\nsystem\n0N.", "'os.system'");
    REFUSE(PROTO "cos\nsystem\n0N.", "--allow-global os.system");
    REFUSE(PROTO "cbuiltins\neval\n0N.", "'builtins.eval'");
    REFUSE(PROTO TEXT("\x08", "builtins") TEXT("\x0A", "object.new") "\x93"
                                                                     "0N.",
           "object.new");
    REFUSE(PROTO TEXT("\2", "os") "N\x93.", "no text");
    REFUSE(PROTO "cos\n\x1b[31m\n0N.", "'os.\\x1b[31m'");
    REFUSE(PROTO "ca\0b\nx\n0N.", "NUL");
    REFUSE(PROTO "ctorch\nFloatStorage\n)R.", "only may be named");
    REFUSE(PROTO "ctorch.nn.modules.linear\nLinear\n)R.", "only may be named");
    REFUSE(PROTO "ctorch._utils\n_rebuild_tensor_v2\n)\x81.", "no class");
}

/* "PLACE CLASS" of each place that is not read. */
static void check_unread(const void *pickle, size_t size,
                         const struct phema_checkpoint_options *options, const char *wanted)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_pickle(&checkpoint, pickle, size, options, &err), &err);
    size_t n = 0;
    const struct phema_unread *unread = phema_checkpoint_unread(checkpoint, &n);
    struct phema_strbuf found = {0};
    phema_strbuf_puts(&found, "");
    for (size_t i = 0; i < n; i++)
        phema_strbuf_printf(&found, "%s%.*s %s", i ? ", " : "", (int)unread[i].name_size,
                            unread[i].name, unread[i].class_name);
    assert_string_equal(found.data, wanted);
    phema_strbuf_clear(&found);
    phema_checkpoint_close(checkpoint);
}
#define UNREAD(pickle, wanted) check_unread(pickle, sizeof(pickle) - 1, NULL, wanted)

#define TENSOR_T TEXT("\1", "t") ALL "s"

static void objects_of_unknown_classes_are_opaque(void **state)
{
    (void)state;
    /* without tensors they are nothing: settings, methods, what they are called for */
    UNREAD(PROTO "ctrap\nThing\n.", "");
    UNREAD(PROTO "ctrap\nThing\n)\x81}b.", "");
    UNREAD(PROTO "ctrap\nOuter.Inner\n)R)R.", "");
    UNREAD(PROTO "c__builtin__\ngetattr\nctrap\nThing\n" TEXT("\1", "f") "\x86R.", "");
    UNREAD(PROTO "ctorch.nn.modules.module\ntorch.Os\n)R.", ""); /* leads out of the module */
    /* a state or arguments with tensors, inside or outside of a dict */
    UNREAD(PROTO "ctrap\nThing\n)\x81}" TEXT("\1", "w") ALL "sb.", " trap.Thing");
    UNREAD(PROTO "}" TENSOR_T TEXT("\1", "a") "ctrap\nThing\n" ALL "\x85Rs.", "a trap.Thing");
    UNREAD(PROTO "}" TENSOR_T TEXT("\1", "a") "]ctrap\nThing\n)\x81" ALL "bas.", "a.0 trap.Thing");
    UNREAD(PROTO "}" TENSOR_T TEXT("\1", "a") "ctrap\nThing\nN\x85R" ALL "as.", "a trap.Thing");
    REFUSE(PROTO "ctrap\nThing\n" ALL "\x85R.", "'trap.Thing'"); /* no other tensor */
    /* tensors that are not read */
    UNREAD(PROTO "}" TENSOR_T TEXT("\1", "s") "ctorch._utils\n_rebuild_sparse_tensor\n)Rs.",
           "s torch._utils._rebuild_sparse_tensor");
    UNREAD(PROTO "}" TENSOR_T TEXT("\1", "m") "ctorch._utils\n_rebuild_parameter\nctorch._utils\n"
                                              "_rebuild_meta_tensor_no_storage\n)R\x88N\x87Rs.",
           "m torch._utils._rebuild_meta_tensor_no_storage");
    /* an object that holds itself, as settings with parents do */
    UNREAD(PROTO "ctrap\nThing\n)\x81q\0}" TEXT("\6", "parent") "h\0sb.", "");
    /* lists and dicts of other classes are what they hold */
    check_names(ACCEPT(PROTO "ctrap\nThing\n)\x81" TEXT("\1", "k") ALL "s}b."), "k");
    check_names(ACCEPT(PROTO "}" TEXT("\1", "l") "ctrap\nThing\n)\x81" ALL "a" ALL "as."),
                "l.0 l.1");
}

/* {_parameters: {w: tensor}, _modules: {}}, of any class */
#define STRANGER                                                                                   \
    ")\x81}" TEXT("\x0B", "_parameters") "}" TEXT("\1", "w") ALL "ss" TEXT("\x08", "_modules") "}" \
                                                                                               "s" \
                                                                                               "b"

static void modules_of_unknown_classes_are_read(void **state)
{
    (void)state;
    check_names(ACCEPT(PROTO "ctrap\nThing\n" STRANGER "."), "w");
    check_names(ACCEPT(PROTO "}" TEXT("\3", "ema") "ctrap\nThing\n" STRANGER "s."), "ema.w");
    UNREAD(PROTO "ctrap\nThing\n" STRANGER ".", "");
}

static void tensors_of_other_devices_are_their_copies(void **state)
{
    (void)state;
#define DEVICE "ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n("
    check_names(ACCEPT(PROTO DEVICE ALL "ctorch\nuint8\n" TEXT("\5", "xla:0") "\x89tR."), "tensor");
    REFUSE(PROTO DEVICE ALL "ctorch\nfloat32\n" TEXT("\5", "xla:0") "\x89tR.", "in the dtype of");
    REFUSE(PROTO DEVICE ALL "tR.", "expected 4 arguments");
}

/* Floats are what they are; what other bytes stand for, only the class knows. */
static void tensors_of_unknown_classes_are_read_if_floats(void **state)
{
    (void)state;
#define SUBCLASS(function, args)                                                                   \
    "ctorch._tensor\n_rebuild_from_type_v2\n(" function "ctrap\nThing\n" args "}tR"
#define ARGS(storage, n)                                                                           \
    "(" PID(storage, "0", INT(n)) INT("\0") INT(n) "\x85" INT("\1") "\x85\x89Nt"
    check_names(ACCEPT(PROTO "}" TEXT("\1", "w")
                           SUBCLASS(REBUILD, ARGS("ctorch\nFloatStorage\n", "\2")) "s."),
                "w");
    REFUSE(PROTO "}" TEXT("\1", "w")
               SUBCLASS("ctorch._utils\n_rebuild_sparse_tensor\n", ARGS(BYTES, "\x08")) "s.",
           "'trap.Thing'");
    UNREAD(PROTO "}" TENSOR_T TEXT("\1", "w") SUBCLASS(REBUILD, ARGS(BYTES, "\x08")) "s.",
           "w trap.Thing");
    UNREAD(PROTO "}" TENSOR_T TEXT("\1", "w")
               SUBCLASS("ctorch._utils\n_rebuild_wrapper_subclass\n", ")") "s.",
           "w trap.Thing");
}

static void allowed_names_are_inert(void **state)
{
    (void)state;
    static const char *const names[] = {"trap.Thing"};
    const struct phema_checkpoint_options options = {.allow_globals = names, .n_allow_globals = 1};
    static const char pickle[] = PROTO "ctrap\nThing\n)\x81}b0"
                                       "ctrap\nThing\n)R0"
                                       "ctrap\nThing\n)\x81" TEXT("\1", "k") ALL "s.";
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_pickle(&checkpoint, pickle, sizeof(pickle) - 1, &options, &err), &err);
    check_names(checkpoint, "k"); /* it accepts items like a dict */
    static const char hiding[] = PROTO "}" TENSOR_T TEXT("\1", "o") "ctrap\nThing\n)\x81" ALL "bs.";
    check_unread(hiding, sizeof(hiding) - 1, &options, "");
    static const char other[] = PROTO "}" TENSOR_T TEXT("\1", "o") "ctrap\nThink\n)\x81" ALL "bs.";
    check_unread(other, sizeof(other) - 1, &options, "o trap.Think");
}

static void views_stay_inside_their_storage(void **state)
{
    (void)state;
    REFUSE(PROTO TENSOR(INT("\1"), INT("\x08") "\x85", INT("\1") "\x85") ".", "reaches element 8");
    REFUSE(PROTO TENSOR(INT("\0"), INT("\2") INT("\5") "\x86", INT("\4") INT("\1") "\x86") ".",
           "reaches element 8");
    REFUSE(PROTO TENSOR(INT("\x08"), ")", ")") ".", "reaches element 8");
    /* 2^40 * 2^40 elements of stride 0 */
    REFUSE(PROTO TENSOR(INT("\0"),
                        "\x8A\6\0\0\0\0\0\1"
                        "2\x86",
                        INT("\0") "2\x86") ".",
           "overflows");
    REFUSE(PROTO TENSOR(INT("\0"),
                        "\x8A\6\0\0\0\0\0\1"
                        "2\x86",
                        "\x8A\6\0\0\0\0\0\1"
                        "2\x86") ".",
           "overflows");
    /* 4 steps of 2^62 are 0 modulo 2^64 */
    REFUSE(PROTO TENSOR(INT("\0"), INT("\5") "\x85", "\x8A\x08\0\0\0\0\0\0\0\x40\x85") ".",
           "overflows");
    REFUSE(PROTO TENSOR("J\xFF\xFF\xFF\xFF", INT("\1") "\x85", INT("\1") "\x85") ".",
           "offset of 0");
    REFUSE(PROTO TENSOR("\x88", INT("\1") "\x85", INT("\1") "\x85") ".", "offset of 0");
    REFUSE(PROTO TENSOR(INT("\0"), "\x88\x85", INT("\1") "\x85") ".", "sizes and strides");
    REFUSE(PROTO TENSOR(INT("\0"), "J\xFE\xFF\xFF\xFF\x85", INT("\1") "\x85") ".",
           "sizes and strides");
    REFUSE(PROTO TENSOR(INT("\0"), INT("\1") "\x85", "J\xFE\xFF\xFF\xFF\x85") ".",
           "sizes and strides");
    REFUSE(PROTO TENSOR(INT("\0"), "\x8A\x09\1\0\0\0\0\0\0\0\1\x85", INT("\1") "\x85") ".",
           "sizes");
    REFUSE(PROTO TENSOR(INT("\0"), INT("\1") "\x85", ")") ".", "sizes and strides");
    REFUSE(PROTO TENSOR(INT("\0"), "]" INT("\1") "a", INT("\1") "\x85") ".", "sizes and strides");
    REFUSE(PROTO TENSOR("N", ")", ")") ".", "a storage and an offset");
    REFUSE(PROTO REBUILD ")R.", "expected 6 arguments, found 0");
    /* an expanded tensor may be much larger than its storage */
    struct phema_checkpoint *checkpoint =
        ACCEPT(PROTO TENSOR(INT("\7"), "\x8A\6\0\0\0\0\0\1" INT("\1") "\x86",
                            INT("\0") "\x8A\x08"
                                      "12345678\x86") ".");
    assert_int_equal(phema_checkpoint_tensors(checkpoint)->size_bytes, (uint64_t)1 << 40);
    assert_int_equal(phema_checkpoint_tensors(checkpoint)->stride[0], 0);
    phema_checkpoint_close(checkpoint);
    /* an empty tensor may begin anywhere, and a dimension of size 1 may have any stride */
    checkpoint = ACCEPT(
        PROTO TENSOR(INT("\x63"), INT("\0") INT("\5") "\x86", INT("\5") INT("\1") "\x86") ".");
    assert_null(phema_tensor_start(checkpoint, phema_checkpoint_tensors(checkpoint)));
    phema_checkpoint_close(checkpoint);
    checkpoint = ACCEPT(PROTO TENSOR(INT("\0"), INT("\4") INT("\1") INT("\2") "\x87",
                                     INT("\2") INT("\x63") INT("\1") "\x87") ".");
    assert_null(phema_checkpoint_tensors(checkpoint)->stride);
    phema_checkpoint_close(checkpoint);
}

static void storages_match_the_records_of_the_archive(void **state)
{
    (void)state;
    REFUSE(PROTO PID(BYTES, "0", INT("\7")) ".", "storage '0': expected 7 elements of U8");
    REFUSE(PROTO PID(BYTES, "0", INT("\x09")) ".", "found a record of 8 bytes");
    REFUSE(PROTO PID("ctorch\nFloatStorage\n", "0", INT("\x08")) ".", "found a record of 8 bytes");
    REFUSE(PROTO PID("ctorch\nFloatStorage\n", "0", "\x8A\x08\2\0\0\0\0\0\0\x40") ".", "overflow");
    REFUSE(PROTO PID(BYTES, "1", INT("\x08")) ".", "no record for it");
    REFUSE(PROTO PID(BYTES, "0", "J\xFF\xFF\xFF\xFF") ".", "persistent id");
    REFUSE(PROTO PID(BYTES, "0", "\x88") ".", "persistent id");
    REFUSE(PROTO PID("ctorch\nfloat32\n", "0", INT("\2")) ".", "no class of storages");
    REFUSE(PROTO PID("N", "0", INT("\2")) ".", "persistent id");
    REFUSE(PROTO PID(BYTES, "0", INT("\x08"))
               PID("ctorch\nCharStorage\n", "0", INT("\x08")) "\x86.",
           "named twice");
    REFUSE(PROTO PID(BYTES, "0", INT("\x08")) PID("ctorch\nFloatStorage\n", "0", INT("\2")) "\x86.",
           "named twice");
    check_names(ACCEPT(PROTO PID("ctorch.cuda\nFloatStorage\n", "0", INT("\2")) "."), "");
}

static void nesting_and_cycles_end(void **state)
{
    (void)state;
    size_t n = 1000000;
    char *pickle = malloc(n + 8);
    assert_non_null(pickle);
    memcpy(pickle, PROTO "N", sizeof(PROTO "N"));
    memset(pickle + 3, 0x85, n);
    pickle[n + 3] = '.';
    refuse_pickle(pickle, n + 4, "nested deeper than 200");
    /* the same without an end, and a million marks */
    refuse_pickle(pickle, n + 3, "cut short");
    memset(pickle + 3, '(', n);
    refuse_pickle(pickle, n + 4, "marks");
    memset(pickle + 3, '2', n); /* DUP */
    refuse_pickle(pickle, n + 4, "1000001 objects");
    free(pickle);

    REFUSE(PROTO "]q\0h\0a.", "holds itself");
    REFUSE(PROTO "}q\0N"
                 "h\0s.",
           "holds itself");
    REFUSE(PROTO "]q\0](h\0ea.", "holds itself");
    REFUSE(PROTO "ctorch.nn.modules.linear\nLinear\n)\x81q\0}" TEXT("\x08", "_modules") "}" TEXT(
               "\1", "m") "h\0ss"
                          "b.",
           "holds itself");
}

/* 30 lists, each with ten references to the previous one: 10^30 paths. */
static void put_lattice(struct phema_strbuf *pickle, const void *leaf, size_t leaf_size)
{
    put(pickle, PROTO "(", 3);
    put(pickle, leaf, leaf_size);
    put(pickle, "q\0", 2);
    for (unsigned level = 0; level < 30; level++) {
        put_text(pickle, "](");
        for (int i = 0; i < 10; i++) {
            put_text(pickle, "h");
            put_int(pickle, level, 1);
        }
        put_text(pickle, "eq");
        put_int(pickle, level + 1, 1);
    }
    put_text(pickle, "t."); /* all lists, one after another */
}

/* Each tuple of a chain holds the previous one, 150 levels deep. No tuple is too deep at the time
 * of its check. */
static void chains_of_shared_containers_end(void **state)
{
    (void)state;
    struct phema_strbuf pickle = {0};
    put(&pickle, PROTO "(" ALL, sizeof(PROTO "(" ALL) - 1);
    for (unsigned i = 0; i < 20000; i++) {
        if (i) {
            put_text(&pickle, "j");
            put_int(&pickle, i - 1, 4);
        }
        for (unsigned level = 0; level < 150; level++)
            put_text(&pickle, "\x85");
        put_text(&pickle, "r");
        put_int(&pickle, i, 4);
    }
    put_text(&pickle, "t.");
    refuse_pickle(pickle.data, pickle.size, "nested deeper than 200");
    phema_strbuf_clear(&pickle);
}

static void shared_containers_do_not_unfold_without_end(void **state)
{
    (void)state;
    struct phema_strbuf pickle = {0};
    put_lattice(&pickle, "]", 1);
    check_names(accept_pickle(pickle.data, pickle.size), "");
    phema_strbuf_clear(&pickle);
    put_lattice(&pickle, ALL, sizeof(ALL) - 1);
    refuse_pickle(pickle.data, pickle.size, "many times the file");
    phema_strbuf_clear(&pickle);
}

/* A list of 100 000 pairs. Three bytes copy it into a dict, many times. */
static void copies_of_containers_are_bounded(void **state)
{
    (void)state;
    struct phema_strbuf pickle = {0};
    put(&pickle, PROTO "ccollections\nOrderedDict\nq\0](",
        sizeof(PROTO "ccollections\nOrderedDict\nq\0](") - 1);
    for (int i = 0; i < 100000; i++)
        put_text(&pickle, "NN\x86");
    put(&pickle, "e\x85q\1(", 5);
    for (int i = 0; i < 10000; i++)
        put(&pickle, "h\0h\1R0", 6);
    put_text(&pickle, "1.");
    refuse_pickle(pickle.data, pickle.size, "times its own size in memory");
    phema_strbuf_clear(&pickle);
}

#define MODULE(parameters, buffers, names, children)                                               \
    "ctorch.nn.modules.linear\nLinear\n)\x81}(" TEXT("\x0B", "_parameters")                        \
        parameters TEXT("\x08", "_buffers")                                                        \
            buffers TEXT("\x1B", "_non_persistent_buffers_set") "c__builtin__\nset\n" names        \
                                                                "\x85R" TEXT("\x08", "_modules")   \
                                                                    children "ub"

static void modules_list_as_their_state_dict(void **state)
{
    (void)state;
    struct phema_checkpoint *checkpoint = ACCEPT(PROTO "}" TEXT("\1", "m") MODULE(
        "}" TEXT("\1", "w") ALL "s" TEXT("\1", "n") "Ns",
        "}" TEXT("\1", "b") ALL "s" TEXT("\1", "t") ALL "s", "]" TEXT("\1", "t") "a",
        "}" TEXT("\1", "c")
            MODULE("}" TEXT("\1", "w") ALL "s", "}", "]", "}") "s" TEXT("\1", "d") "Ns") "s.");
    assert_int_equal(phema_checkpoint_tensors(checkpoint)[0].kind, PHEMA_KIND_PARAMETER);
    assert_int_equal(phema_checkpoint_tensors(checkpoint)[1].kind, PHEMA_KIND_BUFFER);
    assert_int_equal(phema_checkpoint_tensors(checkpoint)[2].kind, PHEMA_KIND_PARAMETER);
    check_names(checkpoint, "m.w m.b m.c.w");
    REFUSE(PROTO MODULE("]", "}", "]", "}") ".", "expected a dict of a module's _parameters");
    REFUSE(PROTO MODULE("}" TEXT("\1", "w") "]" ALL "as", "}", "]", "}") ".", "no named tensor");
    REFUSE(PROTO "ctorch.nn.modules.linear\nLinear\n)\x81Nb.", "expected a dict");
    REFUSE(PROTO "ctorch.nn.modules.linear\nLinear\n)\x81}b}b.", "twice");
}

/* Slow: thousands of files; the seeds of the fuzzer reach the same readers. */
static void slow_no_change_of_a_byte_crashes(void **state)
{
    (void)state;
    static const char pickle[] = PROTO "}(" TEXT("\1", "w") ALL TEXT("\1", "v")
        TENSOR(INT("\1"), INT("\2") INT("\2") "\x86", INT("\1") INT("\3") "\x86") TEXT("\1", "m")
            MODULE("}" TEXT("\1", "w") ALL "s", "}", "]", "}") "u.";
    struct phema_strbuf file = {0};
    put_torch(&file, pickle, sizeof(pickle) - 1, 8);
    size_t start = 30 + strlen("a/data.pkl");
    size_t n_opened = survive((const uint8_t *)file.data, file.size, start, sizeof(pickle) - 1, 1);
    assert_true(n_opened > 100); /* names of one letter, and locations */
    phema_strbuf_clear(&file);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_are_the_path_from_the_root),
    cmocka_unit_test(keys_without_a_name_are_left_out_with_a_warning),
    cmocka_unit_test(two_tensors_of_one_name_are_refused),
    cmocka_unit_test(equal_keys_are_one_with_the_last_value),
    cmocka_unit_test(keys_are_hashable),
    cmocka_unit_test(tensors_in_attributes_of_dicts_are_listed),
    cmocka_unit_test(the_stack_is_guarded),
    cmocka_unit_test(the_memo_is_guarded),
    cmocka_unit_test(lengths_end_inside_the_pickle),
    cmocka_unit_test(protocols_and_opcodes_outside_the_list_are_refused),
    cmocka_unit_test(names_that_run_code_are_refused_even_when_dropped),
    cmocka_unit_test(objects_of_unknown_classes_are_opaque),
    cmocka_unit_test(modules_of_unknown_classes_are_read),
    cmocka_unit_test(tensors_of_other_devices_are_their_copies),
    cmocka_unit_test(tensors_of_unknown_classes_are_read_if_floats),
    cmocka_unit_test(allowed_names_are_inert),
    cmocka_unit_test(views_stay_inside_their_storage),
    cmocka_unit_test(storages_match_the_records_of_the_archive),
    cmocka_unit_test(nesting_and_cycles_end),
    cmocka_unit_test(chains_of_shared_containers_end),
    cmocka_unit_test(shared_containers_do_not_unfold_without_end),
    cmocka_unit_test(copies_of_containers_are_bounded),
    cmocka_unit_test(modules_list_as_their_state_dict),
    cmocka_unit_test(slow_no_change_of_a_byte_crashes),
};
TEST_GROUP(tests)
