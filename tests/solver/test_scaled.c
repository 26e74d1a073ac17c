// SPDX-License-Identifier: Apache-2.0
/* test_scaled.c - split quads compared with quad arithmetic. */
#include "support.h"

#include "fixed_point.h"

#define N_NUMBERS 400

/* Both signs, all bits in use, from 2^-200 to 2^200; every 16th is 0. */
static phema_quad number(size_t i)
{
    uint64_t random = 0x9e3779b97f4a7c15 * (i + 1);
    random ^= random >> 31;
    phema_quad x = (phema_quad)(int64_t)(random * 0xbf58476d1ce4e5b9) / 3;
    return i % 16 == 0 ? 0 : x * (phema_quad)ldexpl(1, (int)(random % 400) - 260);
}

static struct phema_scaled taken(phema_quad x)
{
    struct phema_scaled out;
    assert_true(phema_scaled_from_quad(&out, &x));
    return out;
}

static phema_quad put(struct phema_scaled x)
{
    phema_quad out = 1;
    phema_quad_from_scaled(&out, x);
    return out;
}

static void assert_within(phema_quad got, phema_quad wanted, phema_quad tolerance)
{
    assert_true(phema_quad_abs(got - wanted) <= tolerance);
}

static void conversion_to_scaled_and_back_is_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_NUMBERS; i++)
        assert_true(put(taken(number(i))) == number(i));
    phema_quad nearly_two = 2 - (phema_quad)0x1p-112;
    assert_true(put(taken(nearly_two)) == nearly_two);
    /* a mantissa of 126 ones rounds up to the next power of two */
    assert_true(put((struct phema_scaled){PHEMA_FIXED_ONE - 1, -126}) == 1);
    /* halfway between two quads: rounds to the even one */
    phema_fixed step = (phema_fixed)1 << 13, one = PHEMA_FIXED_ONE / 2;
    assert_true(put((struct phema_scaled){one + step / 2, -125}) == 1);
    assert_true(put((struct phema_scaled){one + step + step / 2, -125}) ==
                1 + (phema_quad)0x1p-111);
}

/* A quad's own result is within 2^-113 of the truth; ours is within slightly more than 2^-113. */
static void products_and_differences_are_those_of_quads(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_NUMBERS; i++) {
        for (size_t j = 0; j < N_NUMBERS; j++) {
            phema_quad a = number(i), b = number(j);
            phema_quad size =
                phema_quad_abs(a) > phema_quad_abs(b) ? phema_quad_abs(a) : phema_quad_abs(b);
            assert_within(put(phema_scaled_times(taken(a), taken(b))), a * b,
                          phema_quad_abs(a * b) * (phema_quad)0x1p-112);
            assert_within(put(phema_scaled_minus(taken(a), taken(b))), a - b,
                          size * (phema_quad)0x1p-112);
        }
    }
}

static void long_products_keep_the_digits_of_quads(void **state)
{
    (void)state;
    phema_quad third = (phema_quad)1 / 3, wanted = 1;
    struct phema_scaled product = taken(1);
    for (int i = 0; i < 10; i++) {
        product = phema_scaled_times(product, taken(third));
        wanted /= 3;
    }
    /* ten times the rounding of third, at most 2^-114 each, and the roundings of wanted */
    assert_within(put(product), wanted, wanted * (phema_quad)0x1p-109);
}

static void out_of_range_is_refused_or_clamped(void **state)
{
    (void)state;
    struct phema_scaled x;
    phema_quad infinite = (phema_quad)INFINITY, none = (phema_quad)NAN;
    assert_false(phema_scaled_from_quad(&x, &infinite));
    assert_false(phema_scaled_from_quad(&x, &none));
    phema_quad tiny = (phema_quad)LDBL_MIN / 2; /* denormal */
    assert_true(phema_scaled_from_quad(&x, &tiny) && x.mantissa == 0);
    phema_quad least = (phema_quad)LDBL_MIN, most = (phema_quad)LDBL_MAX;
    assert_true(put(taken(least)) == least);
    assert_true(put(phema_scaled_times(taken(least), taken((phema_quad)0.5))) == 0);
    assert_true(put(phema_scaled_times(taken(-most), taken(4))) == -infinite);
    assert_true(put(phema_scaled_minus(taken(most), taken(least))) == most);
    assert_true(put(phema_scaled_minus(taken(least), taken(most))) == -most);
}

static void fixed_point_is_clamped(void **state)
{
    (void)state;
    static const double inside[] = {0, 1, -1, 1.75, -1.75, 0x1p-60, -0x1p-60};
    for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
        phema_fixed fixed = phema_fixed_from_scaled(taken((phema_quad)inside[i]));
        assert_true(fixed == phema_fixed_from_quad((phema_quad)inside[i]));
    }
    phema_fixed most = (phema_fixed)(~(phema_ufixed)0 >> 1);
    static const double outside[] = {2, 4.5, 1e20, 1e300};
    for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
        assert_true(phema_fixed_from_scaled(taken((phema_quad)outside[i])) == most);
        assert_true(phema_fixed_from_scaled(taken((phema_quad)-outside[i])) == -most);
    }
    assert_true(phema_fixed_from_scaled(taken((phema_quad)1e-300)) == 0);
    assert_true(phema_fixed_from_scaled((struct phema_scaled){0, 500}) == 0);
    assert_true(phema_fixed_from_scaled((struct phema_scaled){PHEMA_FIXED_ONE, -125}) == most);
}

static void doubles_are_next_to_fixed_point(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_NUMBERS; i++) {
        phema_quad x = number(i);
        if (!(phema_quad_abs(x) < (phema_quad)1.9))
            continue;
        phema_fixed fixed = phema_fixed_from_quad(x);
        phema_quad held = phema_quad_from_fixed(fixed);
        assert_within((phema_quad)phema_double_from_fixed(fixed), held,
                      phema_quad_abs(held) * (phema_quad)0x1.1p-53 + (phema_quad)0x1p-115);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(conversion_to_scaled_and_back_is_exact),
    cmocka_unit_test(products_and_differences_are_those_of_quads),
    cmocka_unit_test(long_products_keep_the_digits_of_quads),
    cmocka_unit_test(out_of_range_is_refused_or_clamped),
    cmocka_unit_test(fixed_point_is_clamped),
    cmocka_unit_test(doubles_are_next_to_fixed_point),
};
TEST_GROUP(tests)
