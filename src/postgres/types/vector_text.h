// What the text forms of vectors have in common: blanks, and numbers as the type real reads them.
#pragma once

#include "postgres/postgres_headers.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <system_error>

namespace pgwarp
{

inline bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

inline const char* skip_spaces(const char* at)
{
    while (is_space(*at)) ++at;
    return at;
}

struct FloatText {
    float value;        // infinite or 0 where it is out of range
    const char* end;    // after the number; where it was looked for if there is none
    bool out_of_range;  // the value is infinite, 0 or denormal, and the text is not
};

// Reads the number at `at`; the text's terminating zero is at `text_end`. `closing` ends the list of numbers.
inline FloatText read_float(const char* at, const char* text_end, char closing)
{
    // from_chars reads plain numbers. For all other input (hexadecimal, a plus sign, out of range, not a number) strtof
    // decides, as for the type real.
    float value = 0;
    const std::from_chars_result plain = std::from_chars(at, text_end, value);
    const bool ends = *plain.ptr == ',' || *plain.ptr == closing || is_space(*plain.ptr);
    if (plain.ec == std::errc() && ends) return {value, plain.ptr, false};
    char* end = nullptr;
    errno = 0;
    value = strtof(at, &end);
    return {value, end, errno == ERANGE};
}

}  // namespace pgwarp
