/* shell_word.h - words quoted for a shell. sh, bash, zsh and fish read them alike. */
#ifndef PHEMA_SHELL_WORD_H
#define PHEMA_SHELL_WORD_H

#include <stddef.h>

/* Writes the word and a NUL where they fit into size bytes, else nothing; out may then be NULL.
 * Plain words stay as they are, others get single quotes. Returns the length without the NUL. */
size_t phema_shell_word(char *out, size_t size, const char *word);

#endif
