// Text as the words of a row: the backend packs characters (code points), so that the engine knows no encoding. The
// first word holds the number of characters and their width; then characters of 1, 2 or 4 bytes follow, little-endian,
// in the smallest width that holds them all, and zeros up to the end of the last word. Equal texts have equal words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/format.h"

namespace pgwarp
{

// A view of a packed text; it does not own the memory.
struct TextView {
    std::uint32_t length = 0;          // characters
    std::uint32_t bytes_each = 1;      // of a character: 1, 2 or 4
    const void* characters = nullptr;  // [length], aligned to one of them

    std::uint32_t operator[](std::size_t i) const
    {
        if (bytes_each == 1) return static_cast<const std::uint8_t*>(characters)[i];
        if (bytes_each == 2) return static_cast<const std::uint16_t*>(characters)[i];
        return static_cast<const std::uint32_t*>(characters)[i];
    }
};

inline constexpr std::uint32_t text_length_bits = 28;  // of the first word; then the width's binary logarithm

// Returns the number of words of a text, the first included.
constexpr std::uint32_t text_words(std::uint32_t length, std::uint32_t bytes_each)
{
    return 1 + (length * bytes_each + 3) / 4;
}

// Returns the smallest width of these characters, in bytes.
inline std::uint32_t text_width(std::span<const std::uint32_t> characters)
{
    std::uint32_t all = 0;
    for (const std::uint32_t character : characters) all |= character;
    if (all < 0x100) return 1;
    return all < 0x10000 ? 2 : 4;
}

// Packs at most max_text_characters characters into out[text_words(length, text_width(characters))].
inline void pack_text(std::span<const std::uint32_t> characters, std::uint32_t* out)
{
    const std::uint32_t width = text_width(characters);
    const auto length = static_cast<std::uint32_t>(characters.size());
    const std::uint32_t words = text_words(length, width);
    for (std::uint32_t i = 1; i < words; ++i) out[i] = 0;
    out[0] = length | (width >> 1) << text_length_bits;
    for (std::uint32_t i = 0; i < length; ++i) {
        const std::uint32_t byte = i * width;
        out[1 + byte / 4] |= characters[i] << (8 * (byte % 4));
    }
}

// Returns a view of valid words: text_fault() must be null.
inline TextView view_text(std::span<const std::uint32_t> words)
{
    const std::uint32_t width = 1U << (words[0] >> text_length_bits);
    return {words[0] & ((1U << text_length_bits) - 1), width, words.data() + 1};
}

// Checks the words of a row; null when pack_text() may have written them, otherwise a description of the fault. It does
// not look at the characters.
inline const char* text_fault(std::span<const std::uint32_t> words)
{
    if (words.empty()) return "text without its length";
    if (words[0] >> text_length_bits > 2) return "text of characters of an unknown width";
    const TextView text = view_text(words);
    if (text.length > max_text_characters) return "text with too many characters";
    if (words.size() != text_words(text.length, text.bytes_each)) return "text of another length than its words";
    return nullptr;
}

}  // namespace pgwarp
