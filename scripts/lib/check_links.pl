# Checks the names in the docs: check_links.pl ROOT. Links of Markdown files lead to files and headings; headers that a
# folder's README lists, and files with a path, exist. Prints a line for each name that does not, and fails then.
use strict;
use warnings;
use File::Basename qw(dirname);

my ($root) = @ARGV;
chdir $root or die "$root: $!\n";
my @files = grep { !m{^(build|tmp_check)/} } map { s{^\./}{}r } split /\n/, `find . -name '*.md' -not -path './.git/*'`;
my $bad = 0;

sub complain
{
	print "@_\n";
	$bad = 1;
	return;
}

sub text_of
{
	my ($file) = @_;
	open my $in, '<', $file or die "$file: $!\n";
	local $/ = undef;
	return <$in>;
}

# The anchors of a file's headings, as forges make them.
my %anchors;
sub anchors_of
{
	my ($file) = @_;
	return $anchors{$file} //= { map { lc(s/[^\w\- ]//gr =~ s/ /-/gr) => 1 } text_of($file) =~ /^#+ +(.*)$/mg };
}

for my $file (@files)
{
	my $folder = dirname($file);
	my $text = text_of($file) =~ s/^```.*?^```//gmsr;
	while ($text =~ /\]\(([^)\s]+)\)/g)
	{
		my ($path, $anchor) = split /#/, $1, 2;
		next if $path =~ /^\w+:/;
		my $target = $path eq '' ? $file : "$folder/$path";
		if (!-e $target) { complain("$file: no $path"); }
		elsif (defined $anchor && !anchors_of($target)->{$anchor}) { complain("$file: no heading #$anchor in $target"); }
	}
	while ($text =~ /`([\w\/.-]+\.(?:h|cuh|cpp|cu|sh|pl|pm|py))`/g)
	{
		my $name = $1;
		# A name with a path is one of the tree, or as includes write it; of others a folder's README lists its own.
		next if grep { -e "$_$name" } $name =~ m{/} ? ('', "$folder/", qw(src/ src/postgres/ cuda/)) : "$folder/";
		next if $name !~ m{/} && $folder !~ m{^(src|cuda)\b};
		complain("$file: no $name");
	}
}
exit $bad;
