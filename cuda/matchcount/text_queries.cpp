#include "matchcount/text_queries.h"

#include <algorithm>

#include "protocol/search_bound.h"

namespace pgwarp::cuda
{

namespace
{

// The arrays that the host writes are const for kernels.
template <class T>
T* writable(const T* array)
{
    return const_cast<T*>(array);
}

}  // namespace

std::uint32_t TextChunk::reach(const SearchBatch& batch, std::size_t i) const
{
    double reach = within_of(batch.settings);
    if (!batch.reach.empty()) reach = std::min(reach, batch.reach[numbers[i]]);
    return reach < everything ? static_cast<std::uint32_t>(std::max(reach, 0.0)) : everything;
}

std::size_t text_query_bytes(const TextChunk& chunk)
{
    TextChunk one = chunk;
    constexpr std::uint32_t number = 0;
    one.numbers = {&number, 1};
    Carver sent;
    Carver memory;
    TextQueries queries = lay_out_sent(one, sent);
    TextAnswers answers;
    lay_out_search(one, memory, queries, answers);
    return sent.used() + memory.used();
}

TextQueries lay_out_sent(const TextChunk& chunk, Carver& sent)
{
    TextQueries queries;
    queries.count = chunk.count();
    queries.k = chunk.k;
    queries.capacity = chunk.capacity();
    queries.stride = chunk.stride();
    queries.near_texts = chunk.near_texts();
    const std::size_t characters = std::size_t{queries.count} * queries.stride;
    queries.lengths = sent.take<std::uint32_t>(queries.count);
    queries.reach = sent.take<std::uint32_t>(queries.count);
    queries.first_keys = sent.take<std::uint64_t>(queries.count);
    queries.ids = sent.take<std::uint8_t>(characters);
    if (chunk.wide) queries.wide = sent.take<std::uint32_t>(characters);
    return queries;
}

void lay_out_search(const TextChunk& chunk, Carver& memory, TextQueries& queries, TextAnswers& answers)
{
    const std::size_t count = chunk.count();
    queries.rest = memory.take<std::uint32_t>(count);
    queries.near = memory.take<std::uint32_t>(count);
    queries.windows = memory.take<std::uint32_t>(count);
    queries.limits = memory.take<std::uint32_t>(count);
    queries.last_keys = memory.take<std::uint64_t>(count);
    queries.found = memory.take<std::uint32_t>(count);
    queries.keys = memory.take<std::uint64_t>(count * chunk.capacity());
    queries.of_distance = memory.take<std::uint32_t>(count * TextQueries::distances);
    queries.of_bound = memory.take<std::uint32_t>(count * TextQueries::bounds);
    answers.keys = memory.take<std::uint64_t>(count * chunk.k);
    answers.found = memory.take<std::uint32_t>(count);
}

void write_queries(const TextChunk& chunk, const SearchBatch& batch, const TextAlphabet& alphabet,
                   const TextQueries& host)
{
    for (std::size_t i = 0; i < chunk.count(); ++i) {
        const TextView text = view_text(batch.lists.list(chunk.numbers[i]));
        writable(host.lengths)[i] = text.length;
        writable(host.reach)[i] = chunk.reach(batch, i);
        writable(host.first_keys)[i] = chunk.first_key;
        std::uint8_t* const ids = writable(host.ids) + i * host.stride;
        for (std::uint32_t at = 0; at < text.length; ++at) ids[at] = alphabet.id(text[at]);
        if (host.wide == nullptr) continue;
        std::uint32_t* const wide = writable(host.wide) + i * host.stride;
        for (std::uint32_t at = 0; at < text.length; ++at) wide[at] = text[at];
    }
}

}  // namespace pgwarp::cuda
