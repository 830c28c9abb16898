// A connection to PostgreSQL by a client library: prepared statements, binary parameters and results, binary COPY.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "matrix.h"

struct pg_conn;
struct pg_result;

namespace pgwarp::bench
{

class Database
{
public:
    explicit Database(const std::string& connection_string);

    // Run SQL without results that matter.
    void run(const std::string& sql);

    // The first column of all rows, as text; NULL is "".
    std::vector<std::string> column(const std::string& sql);

    // The only value of a query, as text.
    std::string value(const std::string& sql);

    // Prepare a statement whose parameters are sent, and whose answer comes, in binary.
    void prepare(const std::string& name, const std::string& sql);

    // Run it with a vector and numbers after it, or with a number alone, and give the ids back.
    std::vector<std::int32_t> search(const std::string& name, std::span<const float> vector,
                                     std::span<const std::int32_t> numbers = {});
    std::vector<std::int32_t> look_up(const std::string& name, std::int32_t id);

    // The first two columns of all rows, numbers both.
    std::vector<std::pair<int, int>> pairs(const std::string& sql);

    // Fill a table (id int, kind int, v vector) by COPY BINARY with `count` rows from `first`; ids are row numbers.
    void copy_rows(const std::string& table, const Matrix<float>& rows, std::size_t first, std::size_t count);

    int process_id() const;

private:
    struct ResultDeleter {
        void operator()(pg_result* result) const;
    };
    struct ConnectionDeleter {
        void operator()(pg_conn* connection) const;
    };
    using Result = std::unique_ptr<pg_result, ResultDeleter>;

    Result execute(const std::string& sql);
    std::vector<std::int32_t> execute_prepared(const std::string& name, std::span<const std::size_t> ends);
    void send_copy(const std::string& data);

    std::unique_ptr<pg_conn, ConnectionDeleter> connection_;
    std::string buffer_;
};

}  // namespace pgwarp::bench
