#include "matchcount/text_session.h"

#include <algorithm>
#include <vector>

#include "device/error.h"
#include "device/searcher.h"
#include "device/wait.h"

namespace pgwarp::cuda
{

namespace
{

constexpr double launch_time = 2e-3;  // seconds: other searches wait for running blocks

}  // namespace

TextSession::TextSession(const Context& context, const TextsView& texts, const TextTimes& times, const TextChunk& chunk,
                         const SearchBatch& batch, Workspace& workspace)
    : context_(context), texts_(texts), times_(times), chunk_(chunk), batch_(batch), stream_(workspace.stream())
{
    const auto on_device = [&](Carver& memory) {
        queries_ = lay_out_sent(chunk_, memory);
        sent_bytes_ = memory.used();
        lay_out_search(chunk_, memory, queries_, answers_);
    };
    const auto on_host = [&](Carver& memory) {
        written_ = lay_out_sent(chunk_, memory);
        written_.rest = memory.take<std::uint32_t>(chunk_.count());
        written_.near = memory.take<std::uint32_t>(chunk_.count());
        written_.limits = memory.take<std::uint32_t>(chunk_.count());
        arrived_.keys = memory.take<std::uint64_t>(std::size_t{chunk_.count()} * chunk_.k);
        arrived_.found = memory.take<std::uint32_t>(chunk_.count());
    };
    Carver device(workspace.device(carved_bytes(on_device)));
    on_device(device);
    Carver host(workspace.pinned(carved_bytes(on_host)));
    on_host(host);
    lengths_ = {written_.lengths, chunk_.count()};
}

template <class T>
void TextSession::read(T* to, const T* from, std::size_t count)
{
    check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToHost, stream_), "reading answers");
}

void TextSession::launch(TextStep step, std::span<const double> seconds)
{
    for (const TextLaunch& launch : plan_text_launches(seconds, launch_time))
        compare_texts(context_, step, texts_, queries_, launch, chunk_.longest, stream_);
}

void TextSession::run(const TextAlphabet& alphabet)
{
    write_queries(chunk_, batch_, alphabet, written_);
    // Both arrays lie first in their memory.
    check(cudaMemcpyAsync(const_cast<std::uint32_t*>(queries_.lengths), written_.lengths, sent_bytes_,
                          cudaMemcpyHostToDevice, stream_),
          "sending queries");
    prepare_text_queries(queries_, stream_);
    std::vector<double> near;
    double rest = 0;
    bool all_near = true;
    for (std::size_t i = 0; i < chunk_.count(); ++i) {
        near.push_back(times_.near(lengths_[i]));
        rest += times_.rest(lengths_[i], written_.reach[i]);
        all_near = all_near && written_.reach[i] <= most_near_bound(lengths_[i]);
    }
    if (!all_near) survey_texts(context_, texts_, queries_, stream_);
    launch(TextStep::near, near);
    if (!all_near) {
        set_windows(queries_, stream_);
        rest <= launch_time && !chunk_.one_round ? launch_rest_of_all() : launch_rest_by_limits();
    }
    finish_texts(queries_, answers_, stream_);
    read(arrived_.keys, answers_.keys, std::size_t{chunk_.count()} * chunk_.k);
    read(arrived_.found, answers_.found, chunk_.count());
    run_overlapped(batch_.overlapped_work);
}

void TextSession::launch_rest_of_all()
{
    queries_.rest = nullptr;
    const std::vector<double> seconds(chunk_.count(), launch_time / chunk_.count());
    launch(TextStep::rest, seconds);
}

// Whether one round is enough for a query: the step `near` had as many texts as it wanted, and found k results. A
// search within a reach is complete.
bool TextSession::ends_after_near(std::size_t i) const
{
    const bool had_enough = written_.near[i] < most_near_bound(lengths_[i]);
    const bool is_full = written_.limits[i] < everything;
    return chunk_.one_round && written_.reach[i] == everything && had_enough && is_full;
}

void TextSession::launch_rest_by_limits()
{
    read(written_.limits, queries_.limits, chunk_.count());
    read(written_.near, queries_.near, chunk_.count());
    run_overlapped(batch_.overlapped_work);
    wait_for(stream_, "waiting for distances");
    batch_.check_cancel();
    auto* const chosen = const_cast<std::uint32_t*>(written_.rest);
    std::vector<double> seconds;
    for (std::uint32_t i = 0; i < chunk_.count(); ++i) {
        if (written_.limits[i] <= written_.near[i] || ends_after_near(i)) continue;
        chosen[seconds.size()] = i;
        seconds.push_back(times_.rest(lengths_[i], written_.limits[i]));
    }
    if (seconds.empty()) return;
    check(cudaMemcpyAsync(const_cast<std::uint32_t*>(queries_.rest), chosen, seconds.size() * sizeof(chosen[0]),
                          cudaMemcpyHostToDevice, stream_),
          "sending queries");
    launch(TextStep::rest, seconds);
}

}  // namespace pgwarp::cuda
