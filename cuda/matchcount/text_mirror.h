// The texts of an index in device memory.
#pragma once

#include <cstdint>

#include "device/context.h"
#include "matchcount/text_alphabet.h"
#include "matchcount/text_view.h"
#include "methods/matchcount/texts_by_length.h"

namespace pgwarp::cuda
{

class TextMirror
{
public:
    // Waits for the copies. Throws std::bad_alloc. `stream` must outlive the mirror.
    TextMirror(const pgwarp::matchcount::TextsByLength& texts, MemoryPool& pool, const Context::Lease& stream,
               ThreadPool& threads);

    TextsView view() const { return view_; }
    const TextAlphabet& alphabet() const { return alphabet_; }
    std::uint64_t characters() const { return characters_; }
    std::uint64_t device_bytes() const { return memory_.bytes(); }

private:
    TextAlphabet alphabet_;
    DeviceArray<std::byte> memory_;
    TextsView view_;
    std::uint64_t characters_ = 0;
};

}  // namespace pgwarp::cuda
