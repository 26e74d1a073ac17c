// SPDX-License-Identifier: Apache-2.0
/* numbers.c - lists of numbers for messages, with runs. */
#include "numbers.h"

void numbers_end(struct numbers *numbers)
{
    if (!numbers->first)
        return;
    phema_strbuf_printf(&numbers->text, "%s%llu", numbers->text.size ? ", " : "",
                        (unsigned long long)numbers->first);
    if (numbers->last > numbers->first)
        phema_strbuf_printf(&numbers->text, "%s%llu",
                            numbers->last > numbers->first + 1 ? "-" : ", ",
                            (unsigned long long)numbers->last);
    numbers->first = 0;
}

void numbers_add(struct numbers *numbers, uint64_t number)
{
    numbers->n++;
    if (numbers->first && number == numbers->last + 1) {
        numbers->last = number;
        return;
    }
    numbers_end(numbers);
    numbers->first = numbers->last = number;
}
