// The searches that an I/O thread accepted in one round of its loop: put together by index and settings, answered at
// once when they are small, and handed to the search queue when they are not.
#include <algorithm>
#include <cstring>

#include "engine/server/io_thread.h"
#include "engine/server/log.h"

namespace pgwarp
{

namespace
{

constexpr double inline_batch_cost = 16e6;       // operations of requests that an I/O thread answers as one batch
constexpr std::size_t most_inline_queries = 64;  // of a request

// The body behind a SearchReply: the counts, padded to 8 bytes, the results, and their places where wanted.
void write_body(const SearchSlice& slice, bool want_places, std::vector<std::byte>& body)
{
    const std::size_t counts = (slice.counts.size_bytes() + 7) / 8 * 8;
    const std::size_t places = want_places ? slice.places.size_bytes() : 0;
    body.assign(counts + slice.results.size_bytes() + places, std::byte{0});
    std::memcpy(body.data(), slice.counts.data(), slice.counts.size_bytes());
    std::byte* const results = body.data() + counts;
    if (!slice.results.empty()) std::memcpy(results, slice.results.data(), slice.results.size_bytes());
    if (places > 0) std::memcpy(results + slice.results.size_bytes(), slice.places.data(), places);
}

SearchReply make_reply(const SearchSlice& slice, const SearchSettings& settings)
{
    const SearchAnswer& answer = slice.answer;
    SearchReply reply{};
    for (std::size_t i = 0; i < delta_log_count; ++i) reply.have_delta_end[i] = answer.snapshot->logs[i].end;
    reply.have_tombstone_version = answer.snapshot->tombstone_version;
    reply.batch_width = slice.batch_width;
    reply.query_count = static_cast<std::uint32_t>(slice.counts.size());
    reply.status = SearchStatus::answered;
    reply.kind = answer.kind;
    reply.bound_width = slice.bound_width;
    reply.on_cuda = settings.mirror->on_cuda() ? 1 : 0;
    reply.has_places = settings.want_places ? 1 : 0;
    reply.delta_cost = static_cast<float>(settings.mirror->delta_cost());
    reply.passing_rows = slice.filtered.passing_rows;
    reply.filter_ways = slice.filtered.ways;
    reply.resolved = answer.resolved;
    reply.last = cursor_behind(slice.results, slice.places, settings.after);
    return reply;
}

}  // namespace

void IoThread::answer_search(const ConnectionPtr& connection, std::uint64_t request_id, SearchReply& reply_struct,
                             Clock::time_point received, Bytes body)
{
    reply_struct.engine_ns = nanoseconds(Clock::now() - received);
    reply(connection, request_id, MessageType::reply, as_bytes(reply_struct), body);
}

void IoThread::answer_dispatched(const ConnectionPtr& connection, std::uint64_t request_id, Mirror& mirror,
                                 SearchReply& reply, Clock::time_point received, Clock::duration dispatched, Bytes body)
{
    reply.queue_ns = nanoseconds(Clock::now() - received - dispatched);
    answer_search(connection, request_id, reply, received, body);
    mirror.count_answer(reply.query_count, reply.queue_ns, reply.engine_ns);
}

void IoThread::refuse_search(const ConnectionPtr& connection, std::uint64_t request_id, Clock::time_point received,
                             const std::shared_ptr<Mirror>& mirror, const ErrorReply& error)
{
    if (error.code != ErrorCode::out_of_device_memory ||
        !engine_.residency.leave_gpu(mirror, engine_.gpu_room(mirror.get()))) {
        return reply_error(connection, request_id, error);
    }
    log_line(LogLevel::log, "the GPU has no room for a search: the CPU serves its index for a while");
    SearchReply reply{};
    reply.status = SearchStatus::need_load;
    answer_search(connection, request_id, reply, received, {});
}

void IoThread::run_round()
{
    while (!round_.empty()) {
        std::vector<RoundSearch> group;
        const auto others = std::stable_partition(round_.begin() + 1, round_.end(), [this](const RoundSearch& search) {
            return can_share_batch(round_.front().settings, search.settings);
        });
        group.assign(std::make_move_iterator(round_.begin()), std::make_move_iterator(others));
        round_.erase(round_.begin(), others);
        run_group(group);
    }
}

void IoThread::run_group(std::vector<RoundSearch>& group)
{
    std::vector<RoundSearch> together;
    double together_cost = 0;
    for (RoundSearch& search : group) {
        double cost = 0;
        try {
            cost = estimate_cost(search.settings, {search.queries.view(), &search.predicates});
        } catch (...) {
            reply_error(search.connection, search.request_id, describe_exception());
            continue;
        }
        const double own_cost = cost * static_cast<double>(search.count);
        if (own_cost > inline_cost || search.count > most_inline_queries) {
            queue_search(std::move(search), cost);
            continue;
        }
        if (!together.empty() && together_cost + own_cost > inline_batch_cost) {
            run_inline(together);
            together.clear();
            together_cost = 0;
        }
        together_cost += own_cost;
        together.push_back(std::move(search));
    }
    if (!together.empty()) run_inline(together);
}

void IoThread::run_inline(std::vector<RoundSearch>& group)
{
    thread_local std::vector<std::byte> body;
    std::size_t queries = 0;
    Clock::duration dispatched{};
    try {
        RowView all = group.front().queries.view();
        const QueryPredicates* predicates = &group.front().predicates;
        for (const RoundSearch& search : group) queries += search.count;
        if (group.size() > 1) {
            batch_queries_.clear();
            batch_predicates_.clear();
            for (const RoundSearch& search : group) {
                batch_queries_.append(search.queries.view());
                batch_predicates_.append(search.predicates, 0, search.count);
            }
            all = batch_queries_.view();
            predicates = &batch_predicates_;
        }
        const SearchSettings& settings = group.front().settings;
        const auto started = Clock::now();
        run_search(settings, {all, predicates}, nullptr, engine_.inline_pool, answer_);
        dispatched = Clock::now() - started;
        settings.mirror->count_batch(queries, nanoseconds(dispatched));
    } catch (...) {
        const ErrorReply error = describe_exception();
        for (RoundSearch& search : group) {
            refuse_search(search.connection, search.request_id, search.received, search.settings.mirror, error);
        }
        return;
    }
    engine_.index_delta(group.front().settings.mirror);
    deliver(group, answer_, static_cast<std::uint32_t>(queries), dispatched,
            [this](RoundSearch& search, const SearchSlice& slice) {
                SearchReply reply = make_reply(slice, search.settings);
                write_body(slice, search.settings.want_places, body);
                answer_dispatched(search.connection, search.request_id, *search.settings.mirror, reply, search.received,
                                  slice.dispatched, body);
            });
    answer_.snapshot.reset();
}

void IoThread::queue_search(RoundSearch&& search, double query_cost)
{
    const ConnectionPtr connection = search.connection;
    if (connection->closed()) return;
    const std::uint64_t number = ++connection->next_search;
    const std::uint64_t id = search.request_id;
    const auto received = search.received;
    QueuedSearch queued;
    queued.settings = std::move(search.settings);
    queued.queries = std::move(search.queries);
    queued.predicates = std::move(search.predicates);
    queued.count = search.count;
    queued.query_cost = query_cost;
    queued.mailbox = this;
    queued.answered = [this, connection, number, id, received](const SearchSettings& settings,
                                                               const SearchSlice& slice) {
        thread_local std::vector<std::byte> body;
        connection->searches.erase(number);
        engine_.index_delta(settings.mirror);
        write_body(slice, settings.want_places, body);
        SearchReply reply = make_reply(slice, settings);
        answer_dispatched(connection, id, *settings.mirror, reply, received, slice.dispatched, body);
    };
    queued.failed = [this, connection, number, id, received](const SearchSettings& settings, const ErrorReply& error) {
        connection->searches.erase(number);
        refuse_search(connection, id, received, settings.mirror, error);
    };
    // The answer comes through the mailbox of this thread, so after the search is noted here.
    connection->searches.emplace(number, engine_.searches.submit(std::move(queued)));
    expect_answer(*connection);
}

}  // namespace pgwarp
