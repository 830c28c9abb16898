#include "matchcount/text_session.h"

#include <algorithm>
#include <vector>

#include "device/error.h"
#include "device/wait.h"

namespace pgwarp::cuda
{

namespace
{

constexpr double launch_time = 2e-3;            // seconds: other searches wait for running blocks
constexpr std::size_t launches_at_a_time = 32;  // between two polls for cancellation

}  // namespace

void TextSession::reserve(TextPlan& plan)
{
    Carver device;
    TextQueries queries = lay_out_sent(plan, device);
    lay_out_search(plan, device, queries);
    plan.workspace = device.used();
    Carver host;
    queries = lay_out_sent(plan, host);
    lay_out_read(plan, host, queries);
    plan.host_workspace = host.used();
}

TextSession::TextSession(const Context& context, const TextsView& texts, const TextTimes& times, const TextPlan& plan,
                         const Chunk& chunk, const SearchBatch& batch)
    : context_(context), texts_(texts), times_(times), plan_(plan), chunk_(chunk), batch_(batch)
{
    Carver device(chunk.workspace);
    queries_ = lay_out_sent(plan, device);
    sent_bytes_ = device.used();
    lay_out_search(plan, device, queries_);
    Carver host(chunk.host_workspace);
    written_ = lay_out_sent(plan, host);
    lay_out_read(plan, host, written_);
}

void TextSession::read(std::uint32_t* to, const std::uint32_t* from)
{
    check(cudaMemcpyAsync(to, from, plan_.count * sizeof(*to), cudaMemcpyDeviceToHost, chunk_.stream),
          "reading distances");
}

void TextSession::launch(TextStep step, std::span<const double> seconds)
{
    std::size_t launched = 0;
    for (const TextLaunch& launch : plan_text_launches(seconds, launch_time)) {
        if (launched == launches_at_a_time) wait();
        launched = launched % launches_at_a_time + 1;
        compare_texts(context_, step, texts_, queries_, launch, plan_.longest, chunk_.stream);
    }
}

void TextSession::wait()
{
    run_overlapped(batch_.overlapped_work);
    wait_for(chunk_.stream, "waiting for distances");
    batch_.check_cancel();
}

void TextSession::run(const TextAlphabet& alphabet)
{
    write_queries(plan_, batch_, alphabet, written_);
    send_written(chunk_, sent_bytes_);
    prepare_text_queries(queries_, chunk_.stream);
    std::vector<double> near;
    double rest = 0;
    bool all_near = true;
    for (std::size_t i = 0; i < plan_.count; ++i) {
        const std::uint32_t length = written_.lengths[i];
        near.push_back(times_.near(length));
        rest += times_.rest(length, written_.reach[i]);
        all_near = all_near && written_.reach[i] <= most_near_bound(length);
    }
    if (!all_near) survey_texts(context_, texts_, queries_, chunk_.stream);
    launch(TextStep::near, near);
    if (!all_near) {
        set_windows(queries_, chunk_.stream);
        rest <= launch_time && !plan_.one_round ? launch_rest_of_all() : launch_rest_by_limits();
    }
    finish_texts(queries_, chunk_.answers, chunk_.stream);
}

void TextSession::launch_rest_of_all()
{
    queries_.rest = nullptr;
    const std::vector<double> seconds(plan_.count, launch_time / plan_.count);
    launch(TextStep::rest, seconds);
}

// Whether one round is enough for a query: the step `near` had as many texts as it wanted, and found k results. A
// search within a reach is complete.
bool TextSession::ends_after_near(std::size_t i) const
{
    const bool had_enough = written_.near[i] < most_near_bound(written_.lengths[i]);
    const bool is_full = written_.limits[i] < everything;
    return plan_.one_round && written_.reach[i] == everything && had_enough && is_full;
}

void TextSession::launch_rest_by_limits()
{
    read(written_.limits, queries_.limits);
    read(written_.near, queries_.near);
    wait();
    auto* const chosen = const_cast<std::uint32_t*>(written_.rest);
    std::vector<double> seconds;
    for (std::uint32_t i = 0; i < plan_.count; ++i) {
        if (written_.limits[i] <= written_.near[i] || ends_after_near(i)) continue;
        chosen[seconds.size()] = i;
        seconds.push_back(times_.rest(written_.lengths[i], written_.limits[i]));
    }
    if (seconds.empty()) return;
    check(cudaMemcpyAsync(const_cast<std::uint32_t*>(queries_.rest), chosen, seconds.size() * sizeof(chosen[0]),
                          cudaMemcpyHostToDevice, chunk_.stream),
          "sending queries");
    launch(TextStep::rest, seconds);
}

}  // namespace pgwarp::cuda
