#include "matchcount/text_mirror.h"

#include <algorithm>
#include <limits>
#include <new>

#include "device/carver.h"
#include "device/wait.h"
#include "methods/bulk_memory.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::uint32_t groups = TextAlphabet::groups;

// The arrays of TextsView in host memory.
struct HostTexts {
    BulkVector<std::uint32_t> lengths;
    BulkVector<std::uint32_t> rows;
    BulkVector<std::uint32_t> begins;
    BulkVector<std::uint8_t> ids;
    BulkVector<std::uint8_t> counts;
    std::vector<std::uint32_t> first_of_length;
    BulkVector<std::uint64_t> wide_begins;
    BulkVector<std::uint32_t> wide;
};

void place_texts(const pgwarp::matchcount::TextsByLength& texts, HostTexts& host)
{
    const std::uint32_t count = texts.first_of_length(most_text_length + 1);
    host.lengths.resize(count);
    host.rows.resize(count);
    host.begins.resize(std::size_t{count} + 1);
    host.counts.resize(std::size_t{count} * groups);
    std::uint64_t end = 0;
    for (std::uint32_t place = 0; place < count; ++place) {
        host.lengths[place] = texts.length(place);
        host.rows[place] = texts.row(place);
        host.begins[place] = static_cast<std::uint32_t>(end);
        end += (host.lengths[place] + 15) / 16;
    }
    if (end > std::numeric_limits<std::uint32_t>::max()) throw std::bad_alloc();  // the CPU serves them
    host.begins[count] = static_cast<std::uint32_t>(end);
    host.ids.resize(end * 16);
    const std::uint32_t longest = count > 0 ? host.lengths[count - 1] : 0;
    for (std::uint32_t length = 0; length <= longest + 1; ++length)
        host.first_of_length.push_back(std::min(texts.first_of_length(length), count));
}

// Half a text's counts lie in each of two arrays.
std::uint8_t& count_at(HostTexts& host, std::size_t place, std::uint32_t group)
{
    const std::size_t half = group / 16;
    return host.counts[(half * host.lengths.size() + place) * 16 + group % 16];
}

void encode_text(const TextView& text, const TextAlphabet& alphabet, std::size_t place, HostTexts& host)
{
    std::uint8_t* const ids = host.ids.data() + std::size_t{host.begins[place]} * 16;
    std::fill_n(ids, std::size_t{host.begins[place + 1] - host.begins[place]} * 16, std::uint8_t{0});
    for (std::uint32_t group = 0; group < groups; ++group) count_at(host, place, group) = 0;
    for (std::uint32_t i = 0; i < text.length; ++i) {
        ids[i] = alphabet.id(text[i]);
        std::uint8_t& count = count_at(host, place, alphabet.group_of_id()[ids[i]]);
        count = static_cast<std::uint8_t>(count + (count < 255));
        if (alphabet.is_shared(ids[i])) host.lengths[place] |= text_is_ambiguous;
    }
}

void copy_ambiguous(const pgwarp::matchcount::TextsByLength& texts, HostTexts& host)
{
    host.wide_begins.resize(host.lengths.size());
    for (std::uint32_t place = 0; place < host.lengths.size(); ++place) {
        host.wide_begins[place] = host.wide.size();
        if ((host.lengths[place] & text_is_ambiguous) == 0) continue;
        const TextView text = texts.text(place);
        for (std::uint32_t i = 0; i < text.length; ++i) host.wide.push_back(text[i]);
    }
}

template <class To, class From>
void send_array(Carver& memory, const To*& to, const From& from, cudaStream_t stream)
{
    To* const at = memory.take<To>(from.size() * sizeof(from[0]) / sizeof(To));
    to = at;
    if (at != nullptr && !from.empty()) send(at, from.data(), from.size() * sizeof(from[0]), stream, "loading texts");
}

}  // namespace

TextMirror::TextMirror(const pgwarp::matchcount::TextsByLength& texts, MemoryPool& pool, const Context::Lease& stream,
                       ThreadPool& threads)
    : alphabet_(texts.texts(), threads)
{
    HostTexts host;
    place_texts(texts, host);
    const auto count = static_cast<std::uint32_t>(host.lengths.size());
    threads.parallel_for(count, 4096, [&](std::size_t begin, std::size_t end) {
        for (std::size_t place = begin; place < end; ++place)
            encode_text(texts.text(static_cast<std::uint32_t>(place)), alphabet_, place, host);
    });
    if (alphabet_.shares()) copy_ambiguous(texts, host);
    for (std::uint32_t place = 0; place < count; ++place) characters_ += host.lengths[place] & ~text_is_ambiguous;

    view_.count = count;
    view_.longest = static_cast<std::uint32_t>(host.first_of_length.size()) - 2;
    const auto lay_out = [&](Carver& memory) {
        send_array(memory, view_.lengths, host.lengths, stream);
        send_array(memory, view_.rows, host.rows, stream);
        send_array(memory, view_.begins, host.begins, stream);
        send_array(memory, view_.ids, host.ids, stream);
        send_array(memory, view_.counts, host.counts, stream);
        send_array(memory, view_.first_of_length, host.first_of_length, stream);
        send_array(memory, view_.groups, alphabet_.group_of_id(), stream);
        if (!alphabet_.shares()) return;
        send_array(memory, view_.wide_begins, host.wide_begins, stream);
        send_array(memory, view_.wide, host.wide, stream);
    };
    memory_ = DeviceArray<std::byte>(pool, carved_bytes(lay_out), "texts", stream);
    Carver memory(memory_.data());
    lay_out(memory);
    wait_for(stream, "loading texts");
}

}  // namespace pgwarp::cuda
