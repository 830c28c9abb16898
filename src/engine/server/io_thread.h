// A thread that serves a share of the connections: one epoll, a mailbox of tasks from other threads, parked requests
// with their deadlines, and the searches of the round.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/search/spread_search.h"
#include "engine/server/connection.h"
#include "engine/server/decode.h"
#include "engine/server/engine.h"
#include "engine/server/mailbox.h"
#include "engine/server/ticket.h"

namespace pgwarp
{

inline constexpr double inline_cost = 2e6;  // operations of a request that an I/O thread answers itself

using ConnectionPtr = std::shared_ptr<Connection>;

// A request in the hands of its handler.
struct Request {
    ConnectionPtr connection;
    MessageHeader header;
    Bytes payload;
    Clock::time_point received;  // its last byte
    bool timed_out = false;      // was parked until its deadline
    bool resumed = false;        // was parked

    MessageType type() const { return static_cast<MessageType>(header.type); }
};

// A search accepted in this round. At its end, searches of equal settings are answered as one batch.
struct RoundSearch {
    ConnectionPtr connection;
    std::uint64_t request_id;
    Clock::time_point received;
    SearchSettings settings;
    OwnedRows queries;
    QueryPredicates predicates;
    std::size_t count;
};

class IoThread final : public Mailbox
{
public:
    // Replies, parks the request, or throws: Malformed drops the connection, others become the error reply.
    using Handler = void (*)(IoThread& thread, const Request& request);
    IoThread(Engine& engine, Handler handler);
    ~IoThread();
    void start();
    void stop();

    // From any thread.
    void adopt(FileDescriptor socket, std::uint64_t id);
    void post(std::function<void()> task) override;
    void drop_other_incarnations(std::uint64_t incarnation);

    // From this thread, for handlers.
    Engine& engine() { return engine_; }
    Ticket new_ticket() { return {this, ++last_ticket_}; }
    // Keeps the request until its ticket is woken or the deadline passes; then it is handled again.
    void park(const Request& request, Ticket ticket, Clock::time_point deadline);
    void unpark(std::uint64_t number, bool timed_out);
    // Answers a search of many indexes: on this thread when it is cheap, else on a worker.
    void start_spread_search(const Request& request, std::shared_ptr<SpreadSearch> search);
    // Counts the terms of a query, as the search above.
    void start_term_counts(const Request& request, std::shared_ptr<Mirror> mirror,
                           std::shared_ptr<const MirrorSnapshot> snapshot, const RowView& query);
    void add_search(RoundSearch&& search) { round_.push_back(std::move(search)); }

    // Final replies of a request; they count it as answered.
    void reply(const ConnectionPtr& connection, std::uint64_t request_id, MessageType type, Bytes front,
               Bytes rest = {}, std::shared_ptr<BufferMapping> descriptor = nullptr);
    void acknowledge(const ConnectionPtr& connection, std::uint64_t request_id, Bytes data = {});
    void reply_error(const ConnectionPtr& connection, std::uint64_t request_id, const ErrorReply& error);
    // Not a final reply.
    void send_progress(const ConnectionPtr& connection, std::uint64_t request_id, const ProgressReply& progress);
    void answer_search(const ConnectionPtr& connection, std::uint64_t request_id, SearchReply& reply,
                       Clock::time_point received, Bytes body);
    // Runs work on the copy threads, or on this thread when `little`. Its result goes with the acknowledgement. Until
    // then no other request of this connection is handled.
    void run_exclusive(const Request& request, bool little, std::function<std::vector<std::byte>()> work);
    // The same on another worker, with the final reply left to `finish`, which runs on this thread.
    void run_exclusive_on(Worker& worker, const Request& request, std::function<void()> work,
                          std::function<void()> finish);
    void drop(const ConnectionPtr& connection, const std::string& reason);

private:
    struct Parked {
        ConnectionPtr connection;
        MessageHeader header;
        std::vector<std::byte> payload;
        Clock::time_point received;
        std::multimap<Clock::time_point, std::uint64_t>::iterator deadline;
    };

    void loop();
    // Fills `events` and returns their number. Polls until awake_until_, then blocks.
    int wait_for_events(std::span<epoll_event> events);
    // Reads from the connection that was answered last. False: it has sent nothing.
    bool poll_next_request();
    // Makes wait_for_events() poll for `patience` from `now` on, while BusyPoll has room.
    void keep_polling(std::chrono::nanoseconds patience, Clock::time_point now);
    // Polls for the answer to a request of this connection, which another thread is about to post.
    void expect_answer(const Connection& connection);
    // Notes the pace of a connection that is about to be answered. Returns poll_hint_ns of the reply.
    std::uint32_t note_reply(const ConnectionPtr& connection);
    int next_timeout() const;
    void run_mailbox();
    void expire_parked();
    void handle_events(std::uint64_t id, std::uint32_t events);
    void parse(const ConnectionPtr& connection);
    void handle(const Request& request);
    void watch(const ConnectionPtr& connection);
    void close(const ConnectionPtr& connection);
    void finished(const ConnectionPtr& connection) noexcept;
    void unblock(const ConnectionPtr& connection);
    bool may_parse(const Connection& connection) const;
    void run_round();
    // Answers a search whose batches took `dispatched`, and counts it.
    void answer_dispatched(const ConnectionPtr& connection, std::uint64_t request_id, Mirror& mirror,
                           SearchReply& reply, Clock::time_point received, Clock::duration dispatched, Bytes body);
    // Replies an error; for a GPU that is out of memory, tells the sender to load the index again, for the CPU.
    void refuse_search(const ConnectionPtr& connection, std::uint64_t request_id, Clock::time_point received,
                       const std::shared_ptr<Mirror>& mirror, const ErrorReply& error);
    void run_group(std::vector<RoundSearch>& group);
    void run_inline(std::vector<RoundSearch>& group);
    void queue_search(RoundSearch&& search, double query_cost);
    void answer_spread(const ConnectionPtr& connection, std::uint64_t request_id, Clock::time_point received,
                       const SpreadSearch& search);

    Engine& engine_;
    const Handler handler_;
    FileDescriptor epoll_;
    FileDescriptor event_;
    std::thread thread_;
    std::atomic<bool> stopping_{false};

    std::mutex mailbox_mutex_;
    std::vector<std::function<void()>> mailbox_;
    std::vector<std::function<void()>> mail_;  // being run

    std::unordered_map<std::uint64_t, ConnectionPtr> connections_;
    std::vector<ConnectionPtr> to_parse_;                                // were held back by limits
    std::deque<std::pair<Clock::time_point, std::uint64_t>> ungreeted_;  // by deadline of the greeting
    Clock::time_point awake_until_{};
    ConnectionPtr next_sender_;  // answered last, while the thread polls for its next request
    std::uint64_t last_ticket_ = 0;
    std::unordered_map<std::uint64_t, Parked> parked_;
    std::multimap<Clock::time_point, std::uint64_t> deadlines_;
    std::vector<RoundSearch> round_;
    SearchAnswer answer_;
    OwnedRows batch_queries_;
    QueryPredicates batch_predicates_;
};

}  // namespace pgwarp
