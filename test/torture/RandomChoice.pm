# Choices by chance, all from Perl's seeded generator.
package RandomChoice;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
our @EXPORT = qw(pick chance between number_list);

sub pick { return $_[ int rand @_ ] }
sub chance { my ($probability) = @_; return rand() < $probability }
sub between { my ($least, $most) = @_; return $least + int rand($most - $least + 1) }

# Random coordinates as text: whole numbers of a small range where ties are wanted.
sub number_list
{
	my ($count, $ties) = @_;
	return '[' . join(',', map { $ties ? between(1, 4) : sprintf('%.5f', rand(2) - 1) } 1 .. $count) . ']';
}

1;
